#include "tools/meshwork/driver/FitContext.h"

#include "dialects/transformer/Transformer.h"
#include "tools/meshwork/driver/Trial.h"

using namespace mlir;

namespace meshwork::driver {

/// Seconds of a step; nothing where the spec does not allow it, as with heads
/// that the ranks do not divide. Fails by a fault of the compiler.
static FailureOr<std::optional<double>>
secondsWith(spec::Context method, ModuleOp module, spec::Spec spec) {
  OwningOpRef<ModuleOp> copy(module.clone());
  QuietTrials quiet(module.getContext());
  spec.context = method;
  FailureOr<Trial> tried = tryPhases(*copy, spec, "shard");
  if (succeeded(tried))
    return std::optional(tried->seconds);
  if (quiet.areRefused())
    return std::optional<double>();
  quiet.tell();
  return failure();
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
