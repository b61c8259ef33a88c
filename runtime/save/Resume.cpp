#include "runtime/save/Resume.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/Checked.h"
#include "runtime/comm/Blame.h"
#include "runtime/comm/Transport.h"
#include "runtime/io/Files.h"
#include "runtime/io/IoStatus.h"
#include "runtime/machine/Clock.h"
#include "runtime/machine/Memory.h"
#include "runtime/save/RestoreStates.h"
#include <filesystem>

namespace meshwork::runtime {
namespace fs = std::filesystem;

/// The steps that rank 0 has found: folders may not look the same everywhere.
absl::StatusOr<std::vector<uint64_t>>
Resume::order(uint32_t rank, Transport &transport) const {
  std::vector<uint64_t> steps;
  for (const auto &candidate : candidates)
    steps.push_back(candidate->step);
  absl::StatusOr<std::vector<std::string>> all = transport.exchange(
      rank, absl::StrJoin(steps, ","), "the checkpoints to resume from");
  MESHWORK_RETURN_IF_ERROR(all.status());
  steps.clear();
  for (const std::string &text :
       std::vector<std::string>(absl::StrSplit((*all)[0], ','))) {
    uint64_t step = 0;
    if (!absl::SimpleAtoi(text, &step))
      return absl::InternalError("rank 0 tells of no checkpoint");
    steps.push_back(step);
  }
  return steps;
}

absl::Status Resume::tryOne(uint64_t step, Rank &rank, Transport &transport) {
  FileWork work(transport, rank.rank(), "it reads a checkpoint");
  Candidate *candidate = find(step);
  if (!candidate)
    return absl::NotFoundError(absl::StrCat(checkpointName(step),
                                            " is not where this rank looks: "
                                            "all need the same folder"));
  MESHWORK_RETURN_IF_ERROR(opened(*candidate).damage);
  MESHWORK_RETURN_IF_ERROR(candidate->match);
  return restoreStates(rank, plan, *candidate->checkpoint);
}

/// Why the ranks take another one, as the first of them tells it.
absl::StatusOr<std::string> Resume::reason(uint64_t step,
                                           const absl::Status &mine,
                                           uint32_t rank,
                                           Transport &transport) {
  absl::StatusOr<std::vector<std::string>> all = transport.exchange(
      rank, std::string(mine.message()), "what a checkpoint lacks");
  MESHWORK_RETURN_IF_ERROR(all.status());
  std::string text = absl::StrCat("checkpoint ", checkpointName(step),
                                  " is damaged and passed over: ");
  for (const std::string &one : *all) {
    if (one.empty())
      continue;
    text += one;
    break;
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (rank == 0)
    lines.push_back(text);
  return text;
}

/// That the run had when it was saved.
static uint64_t sequenceOf(const Manifest &manifest, const plan::Plan &plan) {
  auto found = manifest.options.find("batch.sequence");
  uint64_t sequence = 0;
  bool isKnown = found != manifest.options.end() &&
                 absl::SimpleAtoi(found->second, &sequence);
  return isKnown ? sequence : plan.sequence();
}

absl::StatusOr<Progress> Resume::choose(const Candidate &candidate,
                                        uint32_t rank, double seconds,
                                        const RunSettings &settings) {
  const Manifest &manifest = candidate.checkpoint->manifest();
  Progress at = manifest.progress;
  if (at.tokens == 0)
    at.tokens = at.samples * sequenceOf(manifest, plan);
  if (at.step >= options.steps && !options.saveGradients.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "--save-gradients needs a step, but ", quote(candidate.path), " has ",
        at.step, " of --steps ", options.steps, " behind it"));
  MESHWORK_RETURN_IF_ERROR(checkWindows(manifest.options, settings));
  std::lock_guard<std::mutex> lock(mutex);
  chosen = &candidate;
  if (rank != 0)
    return at;
  uint64_t bytes = 0;
  for (const StoredFile &file : manifest.files)
    bytes += file.bytes;
  lines.push_back(absl::StrFormat(
      "resumed from %s: %d steps, %d samples; %s in %.2f s",
      quote(candidate.path), at.step, at.samples, bytesText(bytes), seconds));
  for (const std::string &line : changedSettings(manifest.options, settings))
    lines.push_back(line);
  return at;
}

absl::StatusOr<Progress> Resume::restore(Rank &rank, Transport &transport,
                                         const RunSettings &settings) {
  std::vector<uint64_t> steps;
  std::string newest;
  MESHWORK_ASSIGN_OR_RETURN(steps, order(rank.rank(), transport));
  for (uint64_t step : steps) {
    int64_t began = steadyNs();
    absl::Status mine = tryOne(step, rank, transport);
    Candidate *candidate = find(step);
    if (!isDamage(mine) || (candidate && !candidate->match.ok()))
      MESHWORK_RETURN_IF_ERROR(mine);
    uint32_t all = 0;
    MESHWORK_ASSIGN_OR_RETURN(all,
                              transport.agree(rank.rank(), mine.ok() ? 0 : 1,
                                              "what it resumes from"));
    if (all == 0)
      return choose(*candidate, rank.rank(),
                    static_cast<double>(steadyNs() - began) / 1e9, settings);
    std::string why;
    MESHWORK_ASSIGN_OR_RETURN(why, reason(step, mine, rank.rank(), transport));
    if (newest.empty())
      newest = why;
  }
  return plan::bad("--resume: no checkpoint is good; ", newest);
}

/// A name beside `path` that is free.
static std::string replacedName(const fs::path &path) {
  std::error_code ignored;
  fs::path plain =
      path.parent_path() / absl::StrCat("replaced-", path.filename().string());
  fs::path free = plain;
  for (int i = 2; fs::exists(fs::symlink_status(free, ignored)); ++i)
    free = absl::StrCat(plain.string(), "-", i);
  return free;
}

absl::StatusOr<bool> Resume::continuesThere() {
  if (options.checkpoint.empty())
    return false;
  absl::StatusOr<FoundCheckpoints> found = findCheckpoints(options.checkpoint);
  MESHWORK_RETURN_IF_ERROR(fromIo(found.status()));
  bool isThere = false;
  std::error_code error;
  for (const FoundCheckpoint &one : found->all()) {
    isThere |= fs::equivalent(one.path, chosen->path, error);
    if (one.step <= chosen->checkpoint->manifest().progress.step)
      continue;
    std::string name = replacedName(one.path);
    fs::rename(one.path, name, error);
    if (error)
      return fromIo(absl::FailedPreconditionError(
          absl::StrCat(quote(one.path),
                       ": is newer than the one resumed and "
                       "cannot be renamed: ",
                       error.message())));
    lines.push_back(absl::StrCat("checkpoint ", quote(one.path),
                                 " is newer, and now called ", quote(name)));
  }
  return isThere;
}

} // namespace meshwork::runtime
