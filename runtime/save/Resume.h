// Where a run goes on from: the newest good checkpoint, the same on all ranks.
//
//   absl::StatusOr<std::shared_ptr<Resume>> resume = Resume::find(options,
//   plan);
//   // null: --resume auto, and there is nothing yet
//   absl::StatusOr<Progress> at = (*resume)->restore(rank, transport,
//   settings);
#pragma once

#include "meshwork/Runtime/Run.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/rank/Rank.h"
#include "runtime/rank/RunSettings.h"
#include <mutex>

namespace meshwork::runtime {

/// What --resume says, against the other options: invalidArgument.
absl::Status checkResumeOptions(const RunOptions &options);

/// Any thread.
class Resume {
public:
  /// Lists the checkpoints that --resume names, and looks that the newest is of
  /// the plan's model. notFound when there is none, but for `auto`.
  static absl::StatusOr<std::shared_ptr<Resume>> find(const RunOptions &options,
                                                      const plan::Plan &plan);

  /// Fills the rank's states. All ranks call it together and take the same
  /// checkpoint. If any of them finds one damaged, it tells so and the one
  /// before comes next. Fails with dataLoss when none is good.
  ///   settings  of this run, to tell what has changed
  absl::StatusOr<Progress> restore(Rank &rank, Transport &transport,
                                   const RunSettings &settings);

  /// Whether a restore has found a good one.
  bool hasChosen() const {
    std::lock_guard<std::mutex> lock(mutex);
    return chosen != nullptr;
  }
  /// After a restore. Lines for the user: what was passed over, where the run
  /// goes on, which settings have changed.
  const std::vector<std::string> &told() const { return lines; }
  /// Whether it is one of --checkpoint. Those that are newer there are of a
  /// past that the run leaves: they are renamed, `replaced-step-...`, so that
  /// nobody takes them for its own. By one process, before `told`.
  absl::StatusOr<bool> continuesThere();

private:
  struct Candidate {
    std::string path;
    uint64_t step = 0;
    std::once_flag once;
    absl::Status damage; // why it cannot be used
    absl::Status match;
    std::unique_ptr<Checkpoint> checkpoint;
  };

  Resume(const RunOptions &options, const plan::Plan &plan)
      : options(options), plan(plan) {}
  /// Another checkpoint may be good when this one is so.
  static bool isDamage(const absl::Status &status);
  absl::Status list(const std::string &path);
  absl::Status checkAny(const std::string &path) const;
  void add(const std::string &path, uint64_t step);
  absl::Status checkNewest();
  Candidate &opened(Candidate &candidate) const;
  void load(Candidate &candidate) const;
  Candidate *find(uint64_t step);
  absl::StatusOr<std::vector<uint64_t>> order(uint32_t rank,
                                              Transport &transport) const;
  absl::Status tryOne(uint64_t step, Rank &rank, Transport &transport);
  absl::StatusOr<std::string> reason(uint64_t step, const absl::Status &mine,
                                     uint32_t rank, Transport &transport);
  absl::StatusOr<Progress> choose(const Candidate &candidate, uint32_t rank,
                                  double seconds, const RunSettings &settings);

  RunOptions options;
  const plan::Plan &plan;
  std::vector<std::unique_ptr<Candidate>> candidates; // newest first
  mutable std::mutex mutex;                           // guards what follows
  std::vector<std::string> lines;
  const Candidate *chosen = nullptr;
};

} // namespace meshwork::runtime
