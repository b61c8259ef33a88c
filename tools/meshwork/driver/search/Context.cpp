#include "dialects/transformer/Transformer.h"
#include "lib/Spec/Words.h"
#include "tools/meshwork/driver/search/Autos.h"
#include "tools/meshwork/driver/search/Search.h"

using namespace mlir;

namespace meshwork::driver {

using spec::Context;

static bool hasAttention(ModuleOp module) {
  auto found = module.walk(
      [](transformer::AttentionOp) { return WalkResult::interrupt(); });
  return found.wasInterrupted();
}

static std::vector<Context> methodsOf(ModuleOp module, const spec::Spec &spec) {
  if (!hasAttention(module))
    return {};
  std::vector<Context> methods = {Context::gathered, Context::ulysses};
  if (spec.ringRanks() <= spec::longestRing)
    methods.push_back(Context::ring);
  return methods;
}

bool isContextOpen(const spec::Spec &spec) {
  return spec.splits("sequence") && spec.context == Context::byCost;
}

/// By seconds alone: how much memory there is decides later choices.
LogicalResult chooseContext(const AtChoice &at) {
  spec::Spec &spec = at.spec;
  if (!isContextOpen(spec))
    return success();
  Copies copies{at.module, "step"};
  auto tried = tryAll<Context>(methodsOf(at.module, spec), [&](Context method) {
    spec::Spec with = spec;
    with.context = method;
    return copies.compile(with);
  });
  if (failed(tried))
    return failure();
  const Tried<Context> *best = bestOf(*tried, std::nullopt);
  spec.context = best ? best->way : Context::gathered;
  at.said.add(
      [&](auto &os) { os << "context: " << spec::wordOf(spec.context); });
  return success();
}

} // namespace meshwork::driver
