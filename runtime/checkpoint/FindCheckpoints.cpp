#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/io/Files.h"
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <charconv>
#include <filesystem>

namespace meshwork::runtime {

std::optional<uint64_t> stepOfCheckpoint(const std::string &name) {
  size_t digits = name.find_last_not_of("0123456789") + 1;
  uint64_t step = 0;
  auto [end, error] =
      std::from_chars(name.data() + digits, name.data() + name.size(), step);
  if (error != std::errc() || checkpointName(step) != name)
    return std::nullopt;
  return step;
}

absl::StatusOr<FoundCheckpoints> findCheckpoints(const std::string &folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error)
    return absl::NotFoundError(
        absl::StrCat(quote(folder), ": ", error.message(),
                     ", expected a folder of checkpoints, or one of them"));
  FoundCheckpoints found;
  for (; !error && entries != std::filesystem::directory_iterator();
       entries.increment(error)) {
    std::optional<uint64_t> step = stepOfCheckpoint(entries->path().filename());
    std::error_code ignored;
    if (!step || !entries->is_directory(ignored))
      continue;
    bool isComplete =
        std::filesystem::exists(entries->path() / manifestName, ignored);
    (isComplete ? found.complete : found.incomplete)
        .push_back({*step, entries->path()});
  }
  if (error)
    return absl::UnavailableError(
        absl::StrCat(quote(folder), ": ", error.message()));
  for (auto *list : {&found.complete, &found.incomplete})
    std::sort(list->begin(), list->end(),
              [](const FoundCheckpoint &a, const FoundCheckpoint &b) {
                return a.step > b.step;
              });
  return found;
}

} // namespace meshwork::runtime
