#include "lib/Driver/Trial.h"

#include "lib/Pipelines/Pipelines.h"
#include "lib/Target/PlanWriter.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace meshwork::driver {

FailureOr<uint64_t> peakAfterPhases(ModuleOp module, const spec::Spec &spec,
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
  return target::peakBytes(module, spec.device);
}

} // namespace meshwork::driver
