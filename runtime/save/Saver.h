// The saves of one rank: what it writes, and what it tells its peers by means
// of meetings that a step has anyway.
//
//   idle      nothing is being saved
//   writing   this rank copies what it saves, then a thread writes it. If
//             computing leaves cores idle, the thread copies, too, until the
//             update comes: then the rank's threads copy with it. Otherwise the
//             rank's threads copy before they go on, which is fastest. Writing
//             takes a small share of the steps after the next (Pace)
//   telling   all ranks know whether all parts are durable. They report it
//             with the step's times
//   listing   the process of rank 0 writes the manifest
//
// All ranks are in the same state after each agreement.
#pragma once

#include "runtime/save/ManifestWriter.h"
#include "runtime/save/Pace.h"
#include "runtime/save/SaveEntries.h"
#include "runtime/save/Snapshot.h"

namespace meshwork::runtime {

// Of the flags that ranks tell each other once a step.
constexpr uint32_t saveIsBusy = 1u << 29, saveFailed = 1u << 30,
                   saveIsAsked = 1u << 31,
                   saveFlags = saveIsBusy | saveFailed | saveIsAsked;

/// All calls come from the rank's thread, but for `deliver`.
class Saver {
public:
  struct Setup {
    const plan::Plan &plan;
    Rank &rank;
    Transport &transport;
    const RunOptions &options;
    ManifestWriter &manifests;
    Progress first;          // where the run begins
    bool isSaved = false;    // that is in a checkpoint of the folder already
    std::vector<int> cpus{}; // that its threads may use
    bool leavesIdle = true;  // some of them, while the rank computes
  };
  /// Takes the memory of the copy.
  static absl::StatusOr<std::unique_ptr<Saver>> create(const Setup &setup);
  ~Saver();

  // In this order, each once a step:
  uint32_t flags() const; // to agree on
  void agreed(uint32_t all);
  /// Until the states may change: copies what is not yet copied.
  void beforeUpdate() { copyTogether(); }
  /// The step has ended: begins a save when it is time.
  void afterUpdate(const Progress &progress, uint32_t all);
  /// For `deliver`, by way of Transport::gather; often "".
  std::string toTell();
  /// `texts` of all ranks, where rank 0 is; each from byte `from` on.
  void deliver(absl::Span<const std::string> texts, size_t from);
  /// With --checkpoint-sync, when a save is due: it is made by `saveNow`, once
  /// the step has been told of, and before the next one begins. Whatever kills
  /// the run, no step of a checkpoint is missing in the metrics.
  bool savesNow() const { return setup.options.checkpointSync && isWanted; }
  absl::Status saveNow();

  /// The run ends: what is being written, then what is not yet saved. Whether
  /// it could be saved is asked of the ManifestWriter.
  absl::Status finish();

private:
  enum class Phase : uint8_t { idle, writing, telling, listing };

  Saver(const Setup &setup, Snapshot snapshot)
      : setup(setup), snapshot(std::move(snapshot)), now(setup.first) {}
  bool isFirst() const { return setup.rank.rank() == 0; }
  void start(bool isLast);
  void copyTogether();
  void copyAndWrite();
  bool isHalfOver() const;
  absl::Status write(SaveEntries &entries) const;
  void end(bool isGood);
  void waitForOwn() const;
  absl::Status drain();

  Setup setup;
  Snapshot snapshot;
  Progress now;
  Phase phase = Phase::idle;
  Save save;
  std::optional<uint64_t> savedStep;
  bool isWanted = false;
  int asksSeen = 0;

  std::thread thread;
  mutable Pace pace;
  mutable std::mutex mutex; // guards what follows while the thread runs
  mutable std::condition_variable changed;
  bool isWritten = true;
  SaveEntries entries;
};

} // namespace meshwork::runtime
