#include "runtime/device/cuda/LibraryNotes.h"
#include "absl/strings/str_cat.h"

namespace meshwork::runtime::cuda {

void LibraryNotes::runs() {
  std::lock_guard<std::mutex> lock(mutex);
  ++run;
}

void LibraryNotes::leaves(absl::string_view instruction,
                          const std::string &why) {
  std::lock_guard<std::mutex> lock(mutex);
  Left &one = left[why];
  if (one.count++ == 0)
    one.first = std::string(instruction);
}

std::string LibraryNotes::text() const {
  std::lock_guard<std::mutex> lock(mutex);
  int all = run;
  for (const auto &[why, one] : left)
    all += one.count;
  if (all == 0 || (left.empty() && words.onlyWhenLeft))
    return "";
  std::string text = absl::StrCat(words.library, " ran ", run, " of ", all, " ",
                                  words.work, "\n");
  for (const auto &[why, one] : left)
    absl::StrAppend(&text, "  ", words.others, " ran ", one.count, ", as \"",
                    one.first, "\": ", why, "\n");
  return text;
}

} // namespace meshwork::runtime::cuda
