#include "runtime/rank/Names.h"
#include "absl/strings/escaping.h"
#include <algorithm>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
constexpr size_t namedAtMost = 5;
} // namespace

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

std::string firstOf(const std::vector<std::string> &names) {
  size_t shown = std::min(names.size(), namedAtMost);
  std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  if (names.size() > shown)
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

std::string hostName() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

} // namespace meshwork::runtime
