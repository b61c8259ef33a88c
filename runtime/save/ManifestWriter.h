// The last file of a save: written once all ranks have told of theirs, by the
// process that has rank 0, on a thread of its own.
#pragma once

#include "lib/Plan/PlanFile.h"
#include "meshwork/Runtime/Run.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/rank/Report.h"
#include "runtime/rank/RunSettings.h"
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace meshwork::runtime {

/// One save of a run, as all ranks know it.
struct Save {
  uint64_t number = 0; // from 1
  Progress progress;
  std::string folder;
  int64_t beginNs = 0; // of the steady clock
  bool isLast = false; // the run ends with it
};

/// Any thread.
class ManifestWriter {
public:
  /// `reporter` may be null where nothing is told.
  ManifestWriter(std::shared_ptr<const plan::PlanFile> plan,
                 const RunOptions &options, RunSettings settings,
                 std::shared_ptr<Reporter> reporter);
  ~ManifestWriter();

  /// What the weights that `step` steps left were found to lose.
  void evaluated(uint64_t step, double loss);
  /// Of every rank, by rank: its SaveEntries. Returns at once.
  void start(const Save &save, std::vector<std::string> texts);
  /// Nothing while it is being written; else whether there is a manifest.
  std::optional<absl::Status> resultOf(uint64_t number) const;
  void waitFor(uint64_t number) const;
  /// Of the last save.
  absl::Status status() const;
  void note(const std::string &line) const;

private:
  void run(const Save &save, const std::vector<std::string> &texts);
  std::string takeEvaluation(uint64_t step);
  absl::Status write(const Save &save, const std::vector<std::string> &texts,
                     uint64_t &bytes);
  absl::Status told(const Save &save, absl::Status status,
                    uint64_t bytes) const;

  std::shared_ptr<const plan::PlanFile> plan;
  RunOptions options;
  RunSettings settings;
  std::shared_ptr<Reporter> reporter;
  std::thread thread;
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  uint64_t doneNumber = 0;
  // By steps: the losses of evaluations that a manifest may still tell.
  std::map<uint64_t, std::string> evaluations;
  absl::Status last;
};

} // namespace meshwork::runtime
