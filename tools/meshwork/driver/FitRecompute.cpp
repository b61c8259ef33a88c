// Policies that keep more and more are lined up, and the last that fits is
// searched: from every layer "full", layer by layer to every layer "selective",
// and on to every layer "none". The first half buys the most time for a byte:
// a layer's products against its norms and activations. Where activations may
// be offloaded, the same is done with the first layers offloaded, a quarter of
// all after the other, and the fastest is taken.
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
    FailureOr<Fitted> best = fit(0);
    if (failed(best))
      return failure();
    for (int64_t part = 1; spec.offload.activations && part <= parts; ++part) {
      FailureOr<Fitted> other = fit(llvm::divideCeil(layers * part, parts));
      if (failed(other))
        return failure();
      if (isBetter(other->trial, best->trial))
        best = other;
    }
    return best->policies;
  }

private:
  struct Fitted {
    Policies policies;
    Trial trial;
  };

  /// Of layers, the first so many parts of which may be offloaded: what they
  /// keep waits longest.
  static constexpr int64_t parts = 4;

  bool fits(const Trial &trial) const { return trial.bytes <= budget; }
  /// What fits is better. Where both fit, the faster is; where none does, the
  /// smaller.
  bool isBetter(const Trial &a, const Trial &b) const {
    if (fits(a) != fits(b))
      return fits(a);
    return fits(a) ? a.seconds < b.seconds : a.bytes < b.bytes;
  }

  /// The most that fits where the first `offloaded` layers keep what they keep
  /// in the host's memory.
  FailureOr<Fitted> fit(int64_t offloaded) {
    // The corners bound the search; between two of them bytes grow evenly.
    int64_t lower = 0, above = 2 * layers + 1;
    FailureOr<Trial> kept = failure();
    uint64_t aboveBytes = 0;
    for (int64_t corner : {2 * layers, layers, int64_t{0}}) {
      kept = tryAt(corner, offloaded);
      if (failed(kept))
        return failure();
      if (fits(*kept) || corner == 0) {
        lower = corner;
        break;
      }
      above = corner;
      aboveBytes = kept->bytes;
    }
    while (above - lower > 1 && fits(*kept)) {
      int64_t step = between(lower, kept->bytes, above, aboveBytes);
      FailureOr<Trial> tried = tryAt(step, offloaded);
      if (failed(tried))
        return failure();
      if (fits(*tried)) {
        lower = step;
        kept = tried;
      } else {
        above = step;
        aboveBytes = tried->bytes;
      }
    }
    return Fitted{at(lower, offloaded), *kept};
  }

  /// Policies number `step` of the line, but for the offloaded layers.
  Policies at(int64_t step, int64_t offloaded) const {
    Policies result(layers,
                    step >= layers ? Recompute::selective : Recompute::full);
    int64_t more = step >= layers ? step - layers : step;
    std::fill(result.end() - more, result.end(),
              step >= layers ? Recompute::none : Recompute::selective);
    std::fill(result.begin(), result.begin() + offloaded, Recompute::offload);
    return result;
  }

  /// Where a straight line meets the budget, inside the two ends.
  int64_t between(int64_t fits, uint64_t fitBytes, int64_t above,
                  uint64_t aboveBytes) const {
    double share =
        static_cast<double>(budget - fitBytes) /
        std::max<double>(
            static_cast<double>(aboveBytes) - static_cast<double>(fitBytes), 1);
    return std::clamp(
        fits + static_cast<int64_t>(share * static_cast<double>(above - fits)),
        fits + 1, above - 1);
  }

  FailureOr<Trial> tryAt(int64_t step, int64_t offloaded) {
    OwningOpRef<ModuleOp> copy(module.clone());
    spec::Spec trial = spec;
    trial.recomputeOfLayers = at(step, offloaded);
    return tryPhases(*copy, trial, "recompute");
  }

  ModuleOp module;
  const spec::Spec &spec;
  uint64_t budget;
  int64_t layers = 1;
};
} // namespace

FailureOr<Policies> fitRecompute(ModuleOp module, const spec::Spec &spec) {
  return Fit(module, spec).run();
}

} // namespace meshwork::driver
