// A run, as its ranks' threads share it; Trainer.cpp starts and ends them,
// TrainerStart.cpp makes ranks ready, TrainerSteps.cpp takes steps. Internal to
// those.
#pragma once

#include "runtime/save/Saver.h"
#include "runtime/train/Trainer.h"
#include <condition_variable>
#include <cstring>
#include <mutex>

namespace meshwork::runtime {

/// A step whose end has not been waited for.
struct OpenStep {
  uint64_t step = 0;
  double rate = 0;
  Rank::Look look;
  CommTimes comm;
  bool isLast = false;
  std::string saved; // what the step's end tells of a save
  bool isSkipped = false;
  uint64_t tokens = 0;                // of all ranks, without padding
  std::optional<uint32_t> turns = {}; // Executor::takeMostTurns
};

/// Where a rank's run begins, and whether that is in --checkpoint already.
struct Begin {
  Progress at;
  bool isSaved = false;
};

/// Plain values on their way between ranks.
template <typename T> std::string bytesOf(const T &value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof(value));
}
template <typename T> T valueOf(const std::string &bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof(value), bytes.size()));
  return value;
}

struct Trainer::Job {
  Job(TrainerParts given, const RunOptions &runOptions, bool spins);
  /// Ranks use the device, and both ask the transport until they have ended.
  ~Job();

  absl::Status runRank(uint32_t rank);

  TrainerParts parts;
  RunOptions options;
  Mesh mesh;
  std::shared_ptr<Transport> transport;
  RunSettings settings;
  ManifestWriter manifests;
  Ranks ranks;
  std::vector<Begin> begins;        // one per rank
  std::vector<uint64_t> tokensRead; // since; one per rank, without padding
  std::vector<std::unique_ptr<Saver>> savers; // null without --checkpoint
  Recorders recorders;
  std::vector<int> cpus; // of this process, before ranks are pinned

  // Threads that have not ended.
  std::mutex mutex;
  std::condition_variable ended;
  std::vector<bool> hasEnded;
  uint32_t running = 0;
  bool failed = false;

  absl::Status saveState(const std::string &path, StatePart part);
  /// How it went, where it was done before an evaluation. By the thread of the
  /// first rank that is here.
  std::optional<absl::Status> gradientsSaved;

  /// The run ends, but with weights as they should be; the first says why.
  void endBecause(absl::Status why);
  absl::Status ending();

private:
  // Evaluation.cpp
  uint64_t evaluatedWindows() const;
  absl::Status keepGradients(uint32_t rank);
  bool evaluatesAfter(uint64_t step) const;
  /// Tells what a look at other samples finds. What fails there ends the run.
  absl::Status evaluate(uint32_t rank, uint64_t step);
  absl::StatusOr<bool> evaluateStep(uint32_t rank,
                                    const class EvaluationSteps &steps,
                                    uint64_t k, float &loss);

  absl::Status prepareRank(uint32_t rank);
  absl::Status placeStates(uint32_t rank);
  absl::Status resume(uint32_t rank);
  absl::Status measurePeak(uint32_t rank);
  absl::Status makeSaver(uint32_t rank);
  absl::Status runSteps(uint32_t rank);
  absl::Status beginStep(uint32_t rank, uint64_t step);
  Progress after(uint32_t rank, uint64_t step) const;
  uint64_t tokensIn(uint32_t rank, uint64_t step) const;
  uint32_t flagsOf(uint32_t rank, const Rank::Look &look);
  absl::StatusOr<std::optional<OpenStep>> updateStep(uint32_t rank,
                                                     uint64_t step);
  bool maySkip(uint32_t rank, uint64_t step, uint32_t flags) const;
  absl::Status skipStep(uint32_t rank, const OpenStep &open);
  absl::Status refuseStep(uint32_t rank, const OpenStep &open, uint32_t flags);
  absl::Status closeStep(uint32_t rank, const OpenStep &open);
  void report(uint32_t rank, StepReport mine,
              absl::Span<const std::string> times);

  absl::Status whyEnded; // guarded by `mutex`
  int asksTold = 0;      // signals for a checkpoint, where none is made
};

} // namespace meshwork::runtime
