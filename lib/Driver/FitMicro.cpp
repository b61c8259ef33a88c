#include "lib/Driver/FitMicro.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Driver/Choices.h"
#include "lib/Driver/Files.h"
#include "lib/Driver/Trial.h"
#include "lib/Pipelines/Pipelines.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace meshwork::driver {

/// As `compile` does it, without code and without a word.
static FailureOr<Trial> tryWhole(const Model &model, spec::Spec spec) {
  constexpr StringRef last = "recompute"; // of the phases with a choice
  Model copy;
  if (copy.readText(model.text(), "") != ok)
    return failure();
  ScopedDiagnosticHandler quiet(copy.module()->getContext(),
                                [](mlir::Diagnostic &) {});
  std::string said;
  for (const pipelines::Phase &phase : pipelines::phases()) {
    if (failed(chooseBefore(phase.name, copy.module(), spec, said)))
      return failure();
    if (phase.name == last)
      break;
    if (failed(runPhase(copy.module(), spec, phase.name)))
      return failure();
  }
  return tryPhases(copy.module(), spec, last);
}

uint32_t fitMicro(const Model &model, uint32_t most,
                  const SpecWithMicro &specWith) {
  uint32_t best = 1;
  std::optional<double> least;
  for (uint32_t micro = 1; micro <= most; ++micro) {
    if (most % micro != 0)
      continue;
    std::optional<spec::Spec> spec = specWith(micro);
    if (!spec)
      break;
    FailureOr<Trial> tried = tryWhole(model, *spec);
    // More sequences need more memory.
    if (failed(tried) || tried->bytes > cost::memoryLimit(*spec)->bytes)
      break;
    if (!least || tried->seconds < *least) {
      least = tried->seconds;
      best = micro;
    }
  }
  return best;
}

} // namespace meshwork::driver
