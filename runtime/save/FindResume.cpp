// Which checkpoints there are to resume from, and what the newest is of; before
// there are ranks.
#include "absl/strings/str_join.h"
#include "lib/Plan/Checked.h"
#include "runtime/io/IoStatus.h"
#include "runtime/save/RestoreStates.h"
#include "runtime/save/Resume.h"

namespace meshwork::runtime {
static constexpr char newestOfFolder[] = "auto";

bool Resume::isDamage(const absl::Status &status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status) ||
         absl::IsUnavailable(status);
}

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
  const std::string &path = isAuto ? options.checkpoint : options.resume;
  if (isAuto && !isThere(path))
    return nullptr;
  MESHWORK_RETURN_IF_ERROR(fromIo(resume->list(path)));
  if (isAuto && resume->candidates.empty())
    return nullptr;
  MESHWORK_RETURN_IF_ERROR(fromIo(resume->checkAny(path)));
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
  if (hasManifest(path)) {
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
  for (const FoundCheckpoint &one : found->all())
    add(one.path, one.step);
  return absl::OkStatus();
}

absl::Status Resume::checkAny(const std::string &path) const {
  if (!candidates.empty())
    return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("--resume: ", quote(path), " holds no checkpoint",
                   lines.empty() ? "" : "; ", absl::StrJoin(lines, "; ")));
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
    candidate.damage = plan::bad(quote(candidate.path), ": is of step ",
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

} // namespace meshwork::runtime
