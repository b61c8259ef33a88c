#include "runtime/core/Resume.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/comm/Blame.h"
#include "runtime/comm/Transport.h"
#include "runtime/core/Checked.h"
#include "runtime/core/Clock.h"
#include "runtime/core/IoStatus.h"
#include "runtime/core/Memory.h"
#include "runtime/core/RestoreStates.h"
#include "runtime/core/RunSettings.h"
#include "runtime/io/Files.h"
#include <algorithm>
#include <filesystem>

namespace meshwork::runtime {
namespace {
namespace fs = std::filesystem;
constexpr char newestOfFolder[] = "auto";

/// Another checkpoint may be good when this one is so.
bool isDamage(const absl::Status &status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status) ||
         absl::IsUnavailable(status);
}

/// A name beside `path` that is free.
std::string replacedName(const fs::path &path) {
  std::error_code ignored;
  fs::path plain =
      path.parent_path() / absl::StrCat("replaced-", path.filename().string());
  fs::path free = plain;
  for (int i = 2; fs::exists(fs::symlink_status(free, ignored)); ++i)
    free = absl::StrCat(plain.string(), "-", i);
  return free;
}
} // namespace

absl::Status checkResumeOptions(const RunOptions &o) {
  if (o.resume == newestOfFolder && o.checkpoint.empty())
    return absl::InvalidArgumentError(
        "--resume auto goes on from the newest checkpoint of --checkpoint, "
        "which is not given");
  if (!o.resume.empty() && o.resume != newestOfFolder && !o.init.empty())
    return absl::InvalidArgumentError(
        "--resume and --init exclude each other, but for --resume auto, which "
        "begins from --init when there is no checkpoint yet");
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Resume>> Resume::find(const RunOptions &options,
                                                     const plan::Plan &plan) {
  if (options.resume.empty())
    return nullptr;
  bool isAuto = options.resume == newestOfFolder;
  std::shared_ptr<Resume> resume(new Resume(options, plan));
  absl::Status status =
      resume->list(isAuto ? options.checkpoint : options.resume);
  if (isAuto && absl::IsNotFound(status))
    return nullptr;
  MESHWORK_RETURN_IF_ERROR(fromIo(status));
  MESHWORK_RETURN_IF_ERROR(resume->checkNewest());
  return resume;
}

void Resume::add(const std::string &path, uint64_t step) {
  auto candidate = std::make_unique<Candidate>();
  candidate->path = path;
  candidate->step = step;
  candidates.push_back(std::move(candidate));
}

absl::Status Resume::list(const std::string &path) {
  std::error_code ignored;
  if (fs::exists(fs::path(path) / manifestName, ignored)) {
    add(path, 0);
    return absl::OkStatus();
  }
  absl::StatusOr<FoundCheckpoints> found = findCheckpoints(path);
  MESHWORK_RETURN_IF_ERROR(found.status());
  uint64_t newest = found->complete.empty() ? 0 : found->complete[0].step;
  for (const FoundCheckpoint &one : found->incomplete)
    if (one.step > newest)
      lines.push_back(absl::StrCat("checkpoint ", quote(one.path),
                                   " is passed over: its save was cut off"));
  for (const FoundCheckpoint &one : found->complete)
    add(one.path, one.step);
  if (candidates.empty())
    return absl::NotFoundError(
        absl::StrCat("--resume: ", quote(path), " holds no checkpoint",
                     lines.empty() ? "" : "; ", absl::StrJoin(lines, "; ")));
  return absl::OkStatus();
}

void Resume::load(Candidate &candidate) const {
  auto opened = Checkpoint::open(candidate.path);
  absl::StatusOr<std::string> model;
  if (opened.ok())
    model = (*opened)->readText(modelName);
  candidate.damage = opened.ok() ? model.status() : opened.status();
  if (!candidate.damage.ok())
    return;
  if ((*opened)->manifest().progress.step > INT32_MAX) {
    candidate.damage = bad(quote(candidate.path), ": is of step ",
                           (*opened)->manifest().progress.step,
                           ", expected at most ", INT32_MAX);
    return;
  }
  candidate.match = matchCheckpoint(plan, **opened, *model);
  candidate.checkpoint = *std::move(opened);
}

Resume::Candidate &Resume::opened(Candidate &candidate) const {
  std::call_once(candidate.once, [&] { load(candidate); });
  return candidate;
}

/// Another model is refused before memory is taken, and so is the format of
/// another release: that checkpoint is good, and the one before it would undo
/// what was trained. Damage is told of when all ranks look.
absl::Status Resume::checkNewest() {
  for (auto &candidate : candidates) {
    if (opened(*candidate).damage.ok())
      return candidate->match;
    if (!isDamage(candidate->damage))
      return fromIo(candidate->damage);
  }
  return absl::OkStatus();
}

Resume::Candidate *Resume::find(uint64_t step) {
  for (auto &candidate : candidates)
    if (candidate->step == step)
      return candidate.get();
  return nullptr;
}

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

absl::StatusOr<Progress> Resume::choose(const Candidate &candidate,
                                        uint32_t rank, double seconds) {
  const Manifest &manifest = candidate.checkpoint->manifest();
  const Progress &at = manifest.progress;
  if (at.step >= options.steps && !options.saveGradients.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "--save-gradients needs a step, but ", quote(candidate.path), " has ",
        at.step, " of --steps ", options.steps, " behind it"));
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
  for (const std::string &line :
       changedSettings(manifest.options, runSettings(options, plan)))
    lines.push_back(line);
  return at;
}

absl::StatusOr<Progress> Resume::restore(Rank &rank, Transport &transport) {
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
                    static_cast<double>(steadyNs() - began) / 1e9);
    std::string why;
    MESHWORK_ASSIGN_OR_RETURN(why, reason(step, mine, rank.rank(), transport));
    if (newest.empty())
      newest = why;
  }
  return bad("--resume: no checkpoint is good; ", newest);
}

absl::StatusOr<bool> Resume::continuesThere() {
  if (options.checkpoint.empty())
    return false;
  absl::StatusOr<FoundCheckpoints> found = findCheckpoints(options.checkpoint);
  MESHWORK_RETURN_IF_ERROR(fromIo(found.status()));
  bool isThere = false;
  std::error_code error;
  for (const FoundCheckpoint &one : found->complete) {
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
