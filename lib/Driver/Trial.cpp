#include "lib/Driver/Trial.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Explain/StepTime.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Target/PlanWriter.h"
#include "mlir/Pass/PassManager.h"
#include "passes/schedule/Costs.h"

using namespace mlir;

namespace meshwork::driver {

/// What the ranks run, and what `explain` would estimate for it.
static void estimate(ModuleOp module, const spec::Spec &spec, Trial &trial) {
  schedule::Costs costs(cost::machineOf(spec), mesh::meshOf(module));
  std::vector<explain::RankWork> ranks;
  for (auto program : module.getOps<schedule::ProgramOp>()) {
    schedule::Order order = schedule::orderOf(program);
    ranks.push_back({std::move(order.lists), std::move(order.actions),
                     costs.listSeconds(program)});
  }
  explain::StepTime time = explain::stepTime(ranks, spec.microbatches());
  trial.seconds = time.seconds;
  if (!time.timeline)
    return;
  trial.costs = explain::costsOf(ranks, time.timeline->stages.size());
  for (const auto &rank : time.timeline->ranks)
    trial.kept = std::max(trial.kept, rank.liveMicrobatches);
}

FailureOr<Trial> tryPhases(ModuleOp module, spec::Spec spec, StringRef first) {
  if (spec.recompute == spec::Recompute::byBudget &&
      spec.recomputeOfLayers.empty())
    spec.recompute = spec::Recompute::selective;
  auto from =
      llvm::find_if(pipelines::phases(), [&](const pipelines::Phase &phase) {
        return phase.name == first;
      });
  for (const pipelines::Phase &phase :
       llvm::make_range(from, pipelines::phases().end())) {
    PassManager passes(module.getContext());
    phase.build(passes, spec);
    if (failed(passes.run(module)))
      return failure();
  }
  FailureOr<uint64_t> bytes = target::peakBytes(module, spec.device);
  if (failed(bytes))
    return failure();
  Trial trial{*bytes};
  estimate(module, spec, trial);
  return trial;
}

} // namespace meshwork::driver
