#include "runtime/save/Saver.h"
#include "lib/Plan/Checked.h"
#include "runtime/base/StartThread.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/HashedFile.h"
#include "runtime/checkpoint/SaveFolder.h"
#include "runtime/machine/Clock.h"
#include "runtime/machine/Cpus.h"

namespace meshwork::runtime {

absl::StatusOr<std::unique_ptr<Saver>> Saver::create(const Setup &setup) {
  absl::StatusOr<Snapshot> snapshot =
      Snapshot::create(setup.rank, setup.plan, !setup.options.checkpointSync);
  MESHWORK_RETURN_IF_ERROR(snapshot.status());
  std::unique_ptr<Saver> saver(new Saver(setup, *std::move(snapshot)));
  if (setup.isSaved)
    saver->savedStep = setup.first.step;
  return saver;
}

Saver::~Saver() {
  pace.hurry();
  if (thread.joinable())
    thread.join();
}

uint32_t Saver::flags() const {
  uint32_t flags = 0;
  if (setup.options.saveNow && setup.options.saveNow->load() != asksSeen)
    flags |= saveIsAsked;
  std::lock_guard<std::mutex> lock(mutex);
  if (phase == Phase::writing && !isWritten)
    flags |= saveIsBusy;
  if (phase == Phase::listing && isFirst()) {
    std::optional<absl::Status> result = setup.manifests.resultOf(save.number);
    if (!result)
      flags |= saveIsBusy;
    else if (!result->ok())
      flags |= saveFailed;
  }
  return flags;
}

void Saver::agreed(uint32_t all) {
  if (phase == Phase::idle || (all & saveIsBusy))
    return;
  if (phase == Phase::writing)
    phase = Phase::telling;
  else if (phase == Phase::listing)
    end(!(all & saveFailed));
}

void Saver::afterUpdate(const Progress &progress, uint32_t all) {
  now = progress;
  uint64_t every = setup.options.checkpointEvery.value_or(0);
  bool isDue = every != 0 && now.step % every == 0;
  if (all & saveIsAsked) {
    asksSeen = setup.options.saveNow ? setup.options.saveNow->load() : 0;
    isDue = true;
  }
  isWanted |= isDue;
  if (phase != Phase::idle) {
    pace.begin(); // no step has both the copy and the writing
    if (isWanted || isHalfOver())
      pace.hurry();
    if (isDue && isFirst())
      setup.manifests.note(absl::StrCat(
          "checkpoint: late after ", now.step, " steps, that of step ",
          save.progress.step, " is still being written"));
    return;
  }
  if (isWanted && !savesNow())
    start(false);
}

absl::Status Saver::saveNow() {
  start(false);
  return drain();
}

void Saver::start(bool isLast) {
  isWanted = false;
  save = {save.number + 1, now,
          absl::StrCat(setup.options.checkpoint, "/", checkpointName(now.step)),
          steadyNs(), isLast};
  phase = Phase::writing;
  entries = {};
  isWritten = false;
  snapshot.begin();
  if (setup.options.checkpointSync) {
    FileWork work(setup.transport, setup.rank.rank(), "it writes a checkpoint");
    return copyAndWrite();
  }
  pace.start(!setup.leavesIdle && !isLast && !isHalfOver());
  if (!setup.leavesIdle)
    copyTogether();
  absl::Status started = startThread(thread, [this] {
    unpin(setup.cpus);
    if (!save.isLast) // beside which nobody computes
      letOthersGoFirst();
    copyAndWrite();
  });
  if (started.ok())
    return;
  pace.hurry(); // the rank's own thread
  copyAndWrite();
}

/// Until all is copied; copyAndWrite tells how it went.
void Saver::copyTogether() {
  if (snapshot.isCopied())
    return;
  ThreadTeam &team = setup.rank.team();
  // What comes from a device takes memory, and one thread is fast enough.
  team.parallelFor(setup.rank.isOnHost() ? team.size() : 1,
                   [&](int64_t, int64_t, int) { (void)snapshot.finish(); });
}

/// Of the time to the next save, if that is known, with the step that begins.
bool Saver::isHalfOver() const {
  uint64_t every = setup.options.checkpointEvery.value_or(0);
  uint64_t over = now.step - save.progress.step;
  return every != 0 && over + 1 >= every / 2;
}

void Saver::copyAndWrite() {
  SaveEntries written;
  written.status = snapshot.finish();
  pace.rest();
  if (written.status.ok())
    written.status = write(written);
  std::lock_guard<std::mutex> lock(mutex);
  entries = std::move(written);
  isWritten = true;
  changed.notify_all();
}

absl::Status Saver::write(SaveEntries &to) const {
  MESHWORK_RETURN_IF_ERROR(makeCheckpointFolder(save.folder));
  absl::StatusOr<WrittenBoxes> written = writeBoxes(
      save.folder, statesName(setup.rank.rank()), snapshot.toWrite(),
      [&](size_t box, WriteBytes writeBytes) {
        return snapshot.produce(box, writeBytes);
      },
      [&] { pace.rest(); });
  MESHWORK_RETURN_IF_ERROR(written.status());
  to.files.push_back(std::move(written->file));
  for (size_t i = 0; i < snapshot.boxes().size(); ++i) {
    const plan::OwnBox &box = snapshot.boxes()[i];
    to.boxes.push_back({box.tensor, box.state, 0, written->offsets[i],
                        box.block.begin, box.block.extent});
  }
  if (!isFirst() || !setup.plan.source_ir())
    return absl::OkStatus();
  absl::StatusOr<HashedFile> model = HashedFile::create(save.folder, modelName);
  MESHWORK_RETURN_IF_ERROR(model.status());
  MESHWORK_RETURN_IF_ERROR(model->write(setup.plan.source_ir()->data(),
                                        setup.plan.source_ir()->size()));
  absl::StatusOr<StoredFile> stored = model->commit();
  MESHWORK_RETURN_IF_ERROR(stored.status());
  to.files.push_back(*std::move(stored));
  return absl::OkStatus();
}

std::string Saver::toTell() {
  if (phase != Phase::telling)
    return "";
  phase = Phase::listing;
  return entriesText(entries);
}

void Saver::deliver(absl::Span<const std::string> texts, size_t from) {
  std::vector<std::string> told;
  for (const std::string &text : texts)
    told.push_back(text.substr(from));
  setup.manifests.start(save, std::move(told));
}

void Saver::end(bool isGood) {
  if (thread.joinable())
    thread.join();
  phase = Phase::idle;
  if (isGood)
    savedStep = save.progress.step;
  else
    removeSave(save.folder,
               {statesName(setup.rank.rank()), isFirst() ? modelName : ""});
}

void Saver::waitForOwn() const {
  pace.hurry();
  if (phase == Phase::listing && isFirst())
    setup.manifests.waitFor(save.number);
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return isWritten; });
}

absl::Status Saver::drain() {
  while (phase != Phase::idle) {
    {
      FileWork work(setup.transport, setup.rank.rank(),
                    "it writes a checkpoint");
      waitForOwn();
    }
    absl::StatusOr<uint32_t> all = setup.transport.agree(
        setup.rank.rank(), flags() & ~saveIsAsked, "the end of a checkpoint");
    MESHWORK_RETURN_IF_ERROR(all.status());
    agreed(*all);
    if (phase != Phase::telling)
      continue;
    MESHWORK_RETURN_IF_ERROR(setup.transport.gather(
        setup.rank.rank(), toTell(), [&](absl::Span<const std::string> texts) {
          deliver(texts, 0);
          return absl::OkStatus();
        }));
  }
  return absl::OkStatus();
}

absl::Status Saver::finish() {
  MESHWORK_RETURN_IF_ERROR(drain());
  if (savedStep == now.step)
    return absl::OkStatus();
  start(true);
  return drain();
}

} // namespace meshwork::runtime
