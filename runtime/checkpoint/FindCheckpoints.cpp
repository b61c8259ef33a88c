#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/io/Files.h"
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <charconv>
#include <filesystem>

namespace meshwork::runtime {
namespace fs = std::filesystem;

std::optional<uint64_t> stepOfCheckpoint(const std::string &name) {
  size_t digits = name.find_last_not_of("0123456789") + 1;
  uint64_t step = 0;
  auto [end, error] =
      std::from_chars(name.data() + digits, name.data() + name.size(), step);
  if (error != std::errc() || checkpointName(step) != name)
    return std::nullopt;
  return step;
}

bool isThere(const std::string &path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool hasManifest(const std::string &folder) {
  return isThere(absl::StrCat(folder, "/", manifestName));
}

namespace {
void sortNewestFirst(std::vector<FoundCheckpoint> &list) {
  std::sort(list.begin(), list.end(),
            [](const FoundCheckpoint &a, const FoundCheckpoint &b) {
              return a.step > b.step;
            });
}

/// Whether `path` is a folder, no link, that is known to hold no manifest.
bool isCutOff(const fs::path &path) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error)) &&
         fs::symlink_status(path / manifestName, error).type() ==
             fs::file_type::not_found;
}

std::vector<FoundCheckpoint> &listFor(const fs::path &path,
                                      FoundCheckpoints &found) {
  std::error_code ignored;
  if (isCutOff(path))
    return found.incomplete;
  return fs::is_directory(path, ignored) && hasManifest(path) ? found.complete
                                                              : found.damaged;
}

absl::Status cannotRead(const std::string &folder,
                        const std::error_code &error) {
  return absl::NotFoundError(
      absl::StrCat(quote(folder), ": ", error.message(),
                   ", expected a folder of checkpoints, or one of them"));
}
} // namespace

std::vector<FoundCheckpoint> FoundCheckpoints::all() const {
  std::vector<FoundCheckpoint> both = complete;
  both.insert(both.end(), damaged.begin(), damaged.end());
  sortNewestFirst(both);
  return both;
}

absl::StatusOr<FoundCheckpoints> findCheckpoints(const std::string &folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error)
    return cannotRead(folder, error);
  FoundCheckpoints found;
  for (; !error && entries != fs::directory_iterator();
       entries.increment(error))
    if (std::optional<uint64_t> step =
            stepOfCheckpoint(entries->path().filename()))
      listFor(entries->path(), found).push_back({*step, entries->path()});
  if (error)
    return absl::UnavailableError(
        absl::StrCat(quote(folder), ": ", error.message()));
  for (auto *list : {&found.complete, &found.incomplete, &found.damaged})
    sortNewestFirst(*list);
  return found;
}

} // namespace meshwork::runtime
