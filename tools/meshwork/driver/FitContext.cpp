#include "tools/meshwork/driver/FitContext.h"

#include "dialects/transformer/Transformer.h"
#include "tools/meshwork/driver/Trial.h"

using namespace mlir;

namespace meshwork::driver {

/// Nothing where the method does not fit, as with heads that the ranks do not
/// divide.
static FailureOr<std::optional<double>>
secondsWith(spec::Context method, ModuleOp module, spec::Spec spec) {
  spec.context = method;
  return trySeconds(module, spec, "shard");
}

static bool hasAttention(ModuleOp module) {
  auto found = module.walk(
      [](transformer::AttentionOp) { return WalkResult::interrupt(); });
  return found.wasInterrupted();
}

FailureOr<spec::Context> fitContext(ModuleOp module, const spec::Spec &spec) {
  spec::Context best = spec::Context::gathered;
  if (!hasAttention(module))
    return best;
  std::vector<spec::Context> methods = {spec::Context::gathered,
                                        spec::Context::ulysses};
  if (spec.ringRanks() <= spec::longestRing)
    methods.push_back(spec::Context::ring);
  std::optional<double> least;
  for (spec::Context method : methods) {
    FailureOr<std::optional<double>> seconds =
        secondsWith(method, module, spec);
    if (failed(seconds))
      return failure();
    if (!*seconds || (least && **seconds >= *least))
      continue;
    least = *seconds;
    best = method;
  }
  return best;
}

} // namespace meshwork::driver
