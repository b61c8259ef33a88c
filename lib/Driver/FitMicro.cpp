#include "lib/Driver/FitMicro.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Driver/Choices.h"
#include "lib/Driver/Files.h"
#include "lib/Pipelines/Pipelines.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace meshwork::driver {

/// As `compile` does it, without code and without a word.
static FailureOr<Trial> tryWhole(const Model &model, spec::Spec spec) {
  Model copy;
  if (copy.readText(model.text(), "") != ok)
    return failure();
  ScopedDiagnosticHandler quiet(copy.module()->getContext(),
                                [](mlir::Diagnostic &) {});
  return tryChoosing(copy.module(), spec, pipelines::phases().front().name);
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
