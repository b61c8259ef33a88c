// All ranks of a plan as threads of this process, step by step.
//
//   Trainer trainer(plan, tokens, weights, reporter, options);
//   absl::Status status = trainer.run();
//   if (status.ok()) status = trainer.saveState(path, StatePart::master);
#pragma once

#include "meshwork/Runtime/Run.h"
#include "runtime/core/PlanFile.h"
#include "runtime/core/Recorder.h"
#include "runtime/core/Report.h"
#include "runtime/core/Weights.h"
#include "runtime/io/SafeTensors.h"

namespace meshwork::runtime {

struct TrainerParts {
  std::shared_ptr<const PlanFile> plan;
  std::shared_ptr<const KernelLibrary> kernels;
  std::shared_ptr<const TokenSource> tokens;        // null: no steps
  std::shared_ptr<const SafeTensorsReader> weights; // null: from the seed
  std::shared_ptr<Reporter> reporter;
  std::vector<CoreShare> cores; // one per rank
};

class Trainer {
public:
  Trainer(TrainerParts parts, const RunOptions &options);

  /// Places weights and runs options.steps steps. The first failure of any
  /// rank stops all and is returned; ranks that do not stop within a second
  /// of it are left behind (their threads and memory stay).
  absl::Status run();

  /// After an ok `run`; see saveState in Weights.h.
  absl::Status saveState(const std::string &path, StatePart part);

  /// After an ok `run`.
  const Ranks &ranks() const;
  const Recorders &recorders() const;

  struct Job; // what threads that are left behind keep alive

private:
  std::shared_ptr<Job> job;
};

} // namespace meshwork::runtime
