// Policies that keep more and more are lined up, and the last that fits is
// searched: from every layer "full", layer by layer to every layer "selective",
// and on to every layer "none". The first half buys the most time for a byte:
// a layer's products against its norms and activations.
#include "tools/meshwork/driver/FitRecompute.h"

#include "dialects/transformer/StepFunctions.h"
#include "lib/Cost/OfSpec.h"
#include "passes/memory/Layers.h"
#include "tools/meshwork/driver/Trial.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

using spec::Recompute;
using Policies = std::vector<Recompute>;

class Fit {
public:
  Fit(ModuleOp module, const spec::Spec &spec)
      : module(module), spec(spec), budget(cost::memoryLimit(spec)->bytes) {
    module.walk([&](func::FuncOp function) { // of each rank of a pipeline
      if (transformer::roleOf(function) ==
          transformer::StepFunction::microbatch)
        layers = std::max(layers, memory::Layers(function).count());
    });
  }

  FailureOr<Policies> run() {
    // The corners bound the search; between two of them bytes grow evenly.
    int64_t fits = 0, above = 2 * layers + 1;
    uint64_t fitBytes = 0, aboveBytes = 0;
    for (int64_t corner : {2 * layers, layers, int64_t{0}}) {
      FailureOr<uint64_t> bytes = bytesAt(corner);
      if (failed(bytes))
        return failure();
      if (*bytes <= budget || corner == 0) {
        fits = corner;
        fitBytes = *bytes;
        break;
      }
      above = corner;
      aboveBytes = *bytes;
    }
    while (above - fits > 1 && fitBytes <= budget) {
      FailureOr<uint64_t> bytes =
          bytesAt(between(fits, fitBytes, above, aboveBytes));
      if (failed(bytes))
        return failure();
      (*bytes <= budget ? fits : above) = lastTried;
      (*bytes <= budget ? fitBytes : aboveBytes) = *bytes;
    }
    return at(fits);
  }

private:
  /// Policies number `step` of the line.
  Policies at(int64_t step) const {
    Policies result(layers,
                    step >= layers ? Recompute::selective : Recompute::full);
    int64_t more = step >= layers ? step - layers : step;
    std::fill(result.end() - more, result.end(),
              step >= layers ? Recompute::none : Recompute::selective);
    return result;
  }

  /// Where a straight line meets the budget, inside the two ends.
  int64_t between(int64_t fits, uint64_t fitBytes, int64_t above,
                  uint64_t aboveBytes) {
    double share =
        static_cast<double>(budget - fitBytes) /
        std::max<double>(
            static_cast<double>(aboveBytes) - static_cast<double>(fitBytes), 1);
    return lastTried =
               std::clamp(fits + static_cast<int64_t>(
                                     share * static_cast<double>(above - fits)),
                          fits + 1, above - 1);
  }

  FailureOr<uint64_t> bytesAt(int64_t step) {
    OwningOpRef<ModuleOp> copy(module.clone());
    spec::Spec trial = spec;
    trial.recomputeOfLayers = at(step);
    FailureOr<Trial> tried = tryPhases(*copy, trial, "recompute");
    return failed(tried) ? FailureOr<uint64_t>(failure()) : tried->bytes;
  }

  ModuleOp module;
  const spec::Spec &spec;
  uint64_t budget;
  int64_t layers = 1;
  int64_t lastTried = 0;
};
} // namespace

FailureOr<Policies> fitRecompute(ModuleOp module, const spec::Spec &spec) {
  return Fit(module, spec).run();
}

} // namespace meshwork::driver
