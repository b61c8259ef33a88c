#include "runtime/save/ManifestWriter.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Plan/Boxes.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/Views.h"
#include "runtime/base/StartThread.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/KeepNewest.h"
#include "runtime/io/Files.h"
#include "runtime/machine/Clock.h"
#include "runtime/machine/Memory.h"
#include "runtime/save/SaveEntries.h"
#include "runtime/save/StoredTensors.h"
#include "runtime/save/Weights.h"
#include <unistd.h>

namespace meshwork::runtime {
using plan::orEmpty;
namespace {
absl::Status add(const SaveEntries &entries, Manifest &manifest) {
  auto firstFile = static_cast<uint32_t>(manifest.files.size());
  for (const StoredFile &file : entries.files)
    manifest.files.push_back(file);
  for (const SaveEntries::Entry &box : entries.boxes) {
    if (box.tensor >= manifest.tensors.size() ||
        box.state >= manifest.tensors[box.tensor].states.size() ||
        box.file >= entries.files.size())
      return absl::InternalError("a rank tells of a box of no state");
    manifest.tensors[box.tensor].states[box.state].boxes.push_back(
        {firstFile + box.file, box.offset, box.begin, box.extent});
  }
  return absl::OkStatus();
}
} // namespace

ManifestWriter::ManifestWriter(std::shared_ptr<const plan::PlanFile> plan,
                               const RunOptions &options, RunSettings settings,
                               std::shared_ptr<Reporter> reporter)
    : plan(std::move(plan)), options(options), settings(std::move(settings)),
      reporter(std::move(reporter)) {}

ManifestWriter::~ManifestWriter() {
  if (thread.joinable())
    thread.join();
}

void ManifestWriter::evaluated(uint64_t step, double loss) {
  std::lock_guard<std::mutex> lock(mutex);
  evaluations[step] = absl::StrFormat("%.9g", loss);
}

/// Saves come in the order of their steps.
std::string ManifestWriter::takeEvaluation(uint64_t step) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string loss =
      evaluations.contains(step) ? evaluations[step] : std::string();
  evaluations.erase(evaluations.begin(), evaluations.upper_bound(step));
  return loss;
}

void ManifestWriter::start(const Save &save, std::vector<std::string> texts) {
  if (thread.joinable())
    thread.join(); // of the save before, which has ended
  auto body = [this, save, all = std::move(texts)] { run(save, all); };
  if (!startThread(thread, body).ok())
    body();
}

void ManifestWriter::run(const Save &save,
                         const std::vector<std::string> &texts) {
  uint64_t bytes = 0;
  absl::Status status = write(save, texts, bytes);
  status = told(save, std::move(status), bytes);
  std::lock_guard<std::mutex> lock(mutex);
  last = std::move(status);
  doneNumber = save.number;
  changed.notify_all();
}

absl::Status ManifestWriter::write(const Save &save,
                                   const std::vector<std::string> &texts,
                                   uint64_t &bytes) {
  Manifest manifest;
  manifest.producer = plan->plan().producer() ? plan->plan().producer()->str()
                                              : std::string("meshwork");
  manifest.progress = save.progress;
  if (save.progress.tokens == save.progress.samples * plan->plan().sequence())
    manifest.progress.tokens = 0;
  manifest.options = settings;
  manifest.evalLoss = takeEvaluation(save.progress.step);
  manifest.tensors = storedTensors(plan->plan());
  for (const std::string &text : texts) {
    absl::StatusOr<SaveEntries> entries = parseEntries(text);
    MESHWORK_RETURN_IF_ERROR(entries.status());
    MESHWORK_RETURN_IF_ERROR(entries->status);
    MESHWORK_RETURN_IF_ERROR(add(*entries, manifest));
  }
  for (const StoredFile &file : manifest.files)
    bytes += file.bytes;
  // Its steps must be in the log whatever happens next.
  if (reporter)
    reporter->syncMetrics();
  std::string path = absl::StrCat(save.folder, "/", manifestName);
  absl::Status status =
      writeWholeInFolder(save.folder, manifestName, manifestText(manifest));
  if (!status.ok()) // It may be there all the same, and not be durable.
    ::unlink(path.c_str());
  return status;
}

/// Tells the user, but for a failure of the last: the end of the run does.
absl::Status ManifestWriter::told(const Save &save, absl::Status status,
                                  uint64_t bytes) const {
  if (status.ok()) {
    bool isBest =
        keepNewest(options.checkpoint, options.keep, save.progress.step,
                   options.keepBest) == save.progress.step;
    note(absl::StrFormat("checkpoint: %s in %s, %.1f s%s", bytesText(bytes),
                         quote(save.folder),
                         static_cast<double>(steadyNs() - save.beginNs) / 1e9,
                         isBest ? ", the best that was evaluated" : ""));
    return status;
  }
  status = absl::Status(status.code(),
                        absl::StrCat("no checkpoint after ", save.progress.step,
                                     " steps: ", status.message()));
  if (reporter && !save.isLast)
    reporter->warn(std::string(status.message()));
  return status;
}

std::optional<absl::Status> ManifestWriter::resultOf(uint64_t number) const {
  std::lock_guard<std::mutex> lock(mutex);
  if (doneNumber < number)
    return std::nullopt;
  return last;
}

void ManifestWriter::waitFor(uint64_t number) const {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return doneNumber >= number; });
}

absl::Status ManifestWriter::status() const {
  std::lock_guard<std::mutex> lock(mutex);
  return last;
}

void ManifestWriter::note(const std::string &line) const {
  if (reporter)
    reporter->note(line);
}

} // namespace meshwork::runtime
