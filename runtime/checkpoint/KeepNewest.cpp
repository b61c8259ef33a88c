#include "runtime/checkpoint/KeepNewest.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/SaveFolder.h"
#include "runtime/io/Files.h"
#include "runtime/io/NewFile.h"
#include <absl/strings/str_cat.h>
#include <filesystem>
#include <limits>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
namespace fs = std::filesystem;

/// A dot and what is random, as OutputFile has them.
constexpr size_t temporaryEnding = 1 + randomEnding;

/// "states-00003.safetensors"
bool isStatesName(std::string_view name) {
  constexpr std::string_view first = "states-", last = ".safetensors";
  if (!name.starts_with(first) || !name.ends_with(last) ||
      name.size() <= first.size() + last.size())
    return false;
  name = name.substr(first.size(), name.size() - first.size() - last.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

bool isOurs(std::string_view name) {
  return name == manifestName || name == modelName || isStatesName(name);
}

/// Ours, or not yet under its name.
bool isOfSave(const std::string &name) {
  size_t dot = name.size() - std::min(name.size(), temporaryEnding);
  return isOurs(name) ||
         (name[dot] == '.' && isOurs(std::string_view(name).substr(0, dot)));
}

bool isManifestOfOurs(const std::string &folder) {
  constexpr std::string_view begin = "{\"format\":\"meshwork-checkpoint\"";
  absl::StatusOr<InputFile> file =
      InputFile::openInFolder(folder, manifestName);
  char found[begin.size()];
  return file.ok() && file->size() >= begin.size() &&
         file->readAt(0, found, begin.size()).ok() &&
         std::string_view(found, begin.size()) == begin;
}
} // namespace

void removeCheckpoint(const std::string &path) {
  if (isLink(path))
    return;
  std::string manifest = absl::StrCat(path, "/", manifestName);
  if (hasManifest(path)) {
    if (!isManifestOfOurs(path) || ::unlink(manifest.c_str()) != 0)
      return;
    (void)syncFolder(path); // The manifest is gone before the files are.
  }
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    if (isOfSave(entry->path().filename()))
      ::unlink(entry->path().c_str());
  ::rmdir(path.c_str());
}

/// Newest first, so that of equal ones the last is the oldest.
static std::optional<uint64_t> bestOf(const FoundCheckpoints &found,
                                      uint64_t step) {
  std::optional<uint64_t> best;
  double lowest = std::numeric_limits<double>::infinity();
  for (const FoundCheckpoint &one : found.complete) {
    if (one.step > step)
      continue;
    auto checkpoint = Checkpoint::open(one.path);
    std::optional<double> loss;
    if (checkpoint.ok())
      loss = evaluationLoss((*checkpoint)->manifest());
    if (!loss || *loss > lowest)
      continue;
    lowest = *loss;
    best = one.step;
  }
  return best;
}

std::optional<uint64_t> keepNewest(const std::string &folder, uint64_t keep,
                                   uint64_t step, bool keepsBest) {
  absl::StatusOr<FoundCheckpoints> found = findCheckpoints(folder);
  if (!found.ok())
    return std::nullopt;
  std::optional<uint64_t> best =
      keepsBest ? bestOf(*found, step) : std::nullopt;
  uint64_t seen = 0;
  for (const FoundCheckpoint &one : found->complete)
    if (one.step <= step && ++seen > keep && one.step != best)
      removeCheckpoint(one.path);
  for (const FoundCheckpoint &one : found->incomplete)
    if (one.step < step)
      removeCheckpoint(one.path);
  return best;
}

void removeIncomplete(const std::string &folder) {
  absl::StatusOr<FoundCheckpoints> found = findCheckpoints(folder);
  if (found.ok())
    for (const FoundCheckpoint &one : found->incomplete)
      removeCheckpoint(one.path);
}

} // namespace meshwork::runtime
