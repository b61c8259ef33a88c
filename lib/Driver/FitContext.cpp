#include "lib/Driver/FitContext.h"

#include "dialects/transformer/Transformer.h"
#include "lib/Driver/Trial.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace meshwork::driver {

/// Seconds of a step; nothing when it does not compile, as of heads that the
/// ranks do not divide.
static std::optional<double> secondsWith(spec::Context method, ModuleOp module,
                                         spec::Spec spec) {
  OwningOpRef<ModuleOp> copy(module.clone());
  ScopedDiagnosticHandler quiet(module.getContext(), [](mlir::Diagnostic &) {});
  spec.context = method;
  FailureOr<Trial> tried = tryPhases(*copy, spec, "shard");
  return failed(tried) ? std::nullopt : std::optional(tried->seconds);
}

static bool hasAttention(ModuleOp module) {
  auto found = module.walk(
      [](transformer::AttentionOp) { return WalkResult::interrupt(); });
  return found.wasInterrupted();
}

spec::Context fitContext(ModuleOp module, const spec::Spec &spec) {
  spec::Context best = spec::Context::gathered;
  if (!hasAttention(module))
    return best;
  std::vector<spec::Context> methods = {spec::Context::gathered,
                                        spec::Context::ulysses};
  if (spec.ringRanks() <= spec::longestRing)
    methods.push_back(spec::Context::ring);
  std::optional<double> least;
  for (spec::Context method : methods) {
    std::optional<double> seconds = secondsWith(method, module, spec);
    if (!seconds || (least && *seconds >= *least))
      continue;
    least = seconds;
    best = method;
  }
  return best;
}

} // namespace meshwork::driver
