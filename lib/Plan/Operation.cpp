#include "lib/Plan/Operation.h"

#include "absl/strings/ascii.h"

namespace meshwork::plan {

std::string nameOf(Operation kind) {
  std::string name;
  for (const char *letter = EnumNameOperation(kind); *letter; ++letter) {
    if (absl::ascii_isupper(*letter) && !name.empty())
      name += '_';
    name += absl::ascii_tolower(*letter);
  }
  return name;
}

} // namespace meshwork::plan
