#include "lib/Driver/Trial.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Target/PlanWriter.h"
#include "mlir/Pass/PassManager.h"
#include "passes/schedule/Costs.h"

using namespace mlir;

namespace meshwork::driver {

/// Of the program that takes longest.
static double secondsOf(ModuleOp module, const spec::Spec &spec) {
  schedule::Costs costs(cost::machineOf(spec), mesh::meshOf(module));
  double longest = 0;
  for (auto program : module.getOps<schedule::ProgramOp>())
    longest = std::max(longest, costs.stepSeconds(program));
  return longest;
}

FailureOr<Trial> tryPhases(ModuleOp module, const spec::Spec &spec,
                           StringRef first) {
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
  return Trial{*bytes, secondsOf(module, spec)};
}

} // namespace meshwork::driver
