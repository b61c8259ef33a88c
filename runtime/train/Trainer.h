// The ranks of a plan that are here, all or one, as threads, step by step.
//
//   Trainer trainer(plan, tokens, weights, reporter, options);
//   absl::Status status = trainer.run();
//   if (status.ok()) status = trainer.saveMasters(path);
//   status.Update(trainer.ending());
#pragma once

#include "lib/Plan/PlanFile.h"
#include "meshwork/Runtime/Run.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/rank/Processes.h"
#include "runtime/rank/Recorder.h"
#include "runtime/rank/Report.h"
#include "runtime/save/Resume.h"
#include "runtime/save/Weights.h"

namespace meshwork::runtime {

struct TrainerParts {
  std::shared_ptr<const plan::PlanFile> plan;
  std::shared_ptr<Device> device; // ends before the trainer's transport
  std::shared_ptr<const TokenSource> tokens;        // null: no steps
  std::shared_ptr<const TokenSource> evalTokens;    // null: no evaluation
  std::shared_ptr<const SafeTensorsReader> weights; // null: from the seed
  std::shared_ptr<Resume> resume; // all states; null: from weights
  std::shared_ptr<Reporter> reporter;
  std::vector<CoreShare> cores; // one per rank; no threads: it is elsewhere
  Processes *processes;         // outlives the trainer
};

class Trainer {
public:
  Trainer(TrainerParts parts, const RunOptions &options);

  /// Places weights and runs options.steps steps, or fewer (`ending`). The
  /// first failure that a rank cannot go on from stops all and is returned.
  /// Ranks that do not stop within a second of it are left behind: their
  /// threads and memory stay. All are left behind when the failure is that
  /// something did not come in time.
  absl::Status run();

  /// After an ok `run`: why it ended early, or what failed beside it. Weights
  /// are those of the last step that all ranks found good. Other processes may
  /// know of no reason.
  absl::Status ending() const;

  /// After an ok `run`: why the last checkpoint is not there, where rank 0 is.
  absl::Status checkpointStatus() const;

  // After an ok `run`, by all processes; the first one writes.
  /// See saveState in Weights.h.
  absl::Status saveMasters(const std::string &path);
  /// To --save-gradients, unless an evaluation behind the last step has needed
  /// their memory: then `run` has, and this tells how that went.
  absl::Status saveGradients();
  absl::Status saveTrace(const std::string &path);

  /// After an ok `run`; null where a rank is in another process.
  const Ranks &ranks() const;
  const Recorders &recorders() const;

  struct Job; // what threads that are left behind keep alive

private:
  std::shared_ptr<Job> job;
};

} // namespace meshwork::runtime
