#include "runtime/core/Names.h"
#include "absl/strings/escaping.h"

namespace meshwork::runtime {

std::string withoutNumbers(const std::string &name) {
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    // A layer's number stands alone between dots; the 1 of "ln_1" does not.
    size_t end = i;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9')
      ++end;
    bool alone = end > i && (i == 0 || name[i - 1] == '.') &&
                 (end == name.size() || name[end] == '.');
    text += alone ? '*' : name[i];
    i = alone ? end - 1 : i;
  }
  return absl::Utf8SafeCHexEscape(text); // It goes to a terminal.
}

} // namespace meshwork::runtime
