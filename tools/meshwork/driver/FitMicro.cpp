#include "tools/meshwork/driver/FitMicro.h"

#include "lib/Cost/OfSpec.h"
#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/Choices.h"
#include "tools/meshwork/driver/Files.h"

using namespace mlir;

namespace meshwork::driver {

namespace {
struct Tried {
  FailureOr<Trial> trial = failure();
  bool isRefused = false; // by an error of the spec
};
} // namespace

/// As `compile` does it, without code and without a word.
static Tried tryWhole(const Model &model, spec::Spec spec) {
  Model copy;
  if (copy.readText(model.text(), "") != ok)
    return {};
  QuietTrials quiet(copy.module()->getContext());
  FailureOr<Trial> trial =
      tryChoosing(copy.module(), spec, pipelines::phases().front().name);
  return {std::move(trial), quiet.areRefused()};
}

uint32_t fitMicro(const Model &model, uint32_t most,
                  const SpecWithMicro &specWith) {
  uint32_t best = 0;
  std::optional<double> least;
  for (uint32_t micro = 1; micro <= most; ++micro) {
    if (most % micro != 0)
      continue;
    std::optional<spec::Spec> spec = specWith(micro);
    if (!spec)
      continue; // Groups of experts.group do not divide it, say.
    if (best == 0)
      best = micro;
    auto [tried, isRefused] = tryWhole(model, *spec);
    // What is wrong shows when that number is compiled.
    if (failed(tried) && !isRefused)
      return micro;
    // More sequences need more memory.
    if (failed(tried) || tried->bytes > cost::memoryLimit(*spec)->bytes)
      break;
    if (!least || tried->seconds < *least) {
      least = tried->seconds;
      best = micro;
    }
  }
  return std::max(best, 1u);
}

} // namespace meshwork::driver
