#include "tools/meshwork/driver/Trial.h"

#include "dialects/schedule/ProgramTables.h"
#include "lib/Cost/OfPlan.h"
#include "lib/Cost/OfSpec.h"
#include "lib/Explain/StepTime.h"
#include "mlir/Pass/PassManager.h"
#include "passes/analysis/SpecKey.h"
#include "passes/analysis/TimesOn.h"
#include "passes/codegen/plan/PlanWriter.h"
#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/Folded.h"

#include <map>
#include <utility>

using namespace mlir;

namespace meshwork::driver {

QuietTrials::QuietTrials(MLIRContext *context) : context(context) {
  handler.emplace(context, [this](mlir::Diagnostic &diagnostic) {
    refused |= diagnostic.getSeverity() == DiagnosticSeverity::Error &&
               !analysis::specKeyOf(diagnostic.getLocation()).empty();
    kept.push_back(std::move(diagnostic));
  });
}

std::string QuietTrials::firstError() const {
  std::string first;
  for (const mlir::Diagnostic &diagnostic : kept) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      continue;
    StringRef key = analysis::specKeyOf(diagnostic.getLocation());
    if (!key.empty())
      return key.str() + ": " + diagnostic.str();
    if (first.empty())
      first = diagnostic.str();
  }
  return first;
}

void QuietTrials::tell() {
  handler.reset();
  for (mlir::Diagnostic &diagnostic : std::exchange(kept, {}))
    context->getDiagEngine().emit(std::move(diagnostic));
}

/// The rank whose lists have each virtual stage.
static std::vector<int32_t>
ranksOfStages(const std::vector<explain::RankWork> &ranks) {
  std::map<uint32_t, int32_t> rankOf;
  for (auto [rank, work] : llvm::enumerate(ranks))
    for (const plan::ListShape &list : work.lists)
      if (list.kind == plan::ListKind::forward)
        rankOf[list.stage] = static_cast<int32_t>(rank);
  auto second = llvm::make_second_range(rankOf);
  return {second.begin(), second.end()};
}

/// What the ranks run, and what `explain` would estimate for it.
static void estimate(ModuleOp module, const spec::Spec &spec, Trial &trial) {
  cost::Times times =
      analysis::timesOn(cost::machineOf(spec), mesh::meshOf(module));
  std::vector<explain::RankWork> ranks;
  for (auto program : module.getOps<schedule::ProgramOp>()) {
    schedule::PackedProgram tables(program);
    ranks.push_back(
        explain::workOf(*tables, cost::meanSeconds(times, *tables)));
  }
  if (ranks.size() > 1)
    trial.rankOf = ranksOfStages(ranks);
  explain::StepTime time = explain::stepTime(ranks, spec.microbatches());
  trial.seconds = time.seconds;
  if (!time.timeline)
    return;
  trial.costs = explain::costsOf(ranks, time.timeline->stages.size());
  for (const auto &rank : time.timeline->ranks)
    trial.kept = std::max(trial.kept, rank.liveMicrobatches);
}

static const pipelines::Phase *phaseNamed(StringRef name) {
  return llvm::find_if(pipelines::phases(), [&](const pipelines::Phase &phase) {
    return phase.name == name;
  });
}

LogicalResult runPhase(ModuleOp module, const spec::Spec &spec, StringRef name,
                       bool verifies) {
  PassManager passes(module.getContext());
  pipelines::addPhase(passes, *phaseNamed(name), spec, /*folds=*/true,
                      verifies);
  return passes.run(module);
}

FailureOr<Trial> tryPhases(ModuleOp module, spec::Spec spec, StringRef first) {
  if (spec.recompute == spec::Recompute::byBudget &&
      spec.recomputeOfLayers.empty())
    spec.recompute = spec::Recompute::selective;
  FewLayers few;
  for (const pipelines::Phase &phase :
       llvm::make_range(phaseNamed(first), pipelines::phases().end()))
    if (!few.run(phase.name, module, spec) &&
        failed(runPhase(module, spec, phase.name)))
      return failure();
  FailureOr<std::vector<uint64_t>> bytes =
      codegen::programBytes(module, spec.device);
  if (failed(bytes))
    return failure();
  Trial trial{*llvm::max_element(*bytes)};
  for (auto program : module.getOps<schedule::ProgramOp>())
    trial.hostBytes =
        std::max<uint64_t>(trial.hostBytes, program.getHostBytes().value_or(0));
  trial.bytesOfRanks = std::move(*bytes);
  estimate(module, spec, trial);
  return trial;
}

} // namespace meshwork::driver
