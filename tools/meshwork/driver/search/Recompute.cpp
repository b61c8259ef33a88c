// Policies that keep more and more are lined up, and the last that fits is
// taken: from every layer "full", layer by layer to every layer "selective",
// and on to every layer "none". The first half buys the most time for a byte:
// a layer's products against its norms and activations. Later layers are the
// first to keep more, since what they keep is freed first. Where activations
// may be offloaded, the same is done with the first layers offloaded, a quarter
// of all after the other, and the fastest is taken.
#include "dialects/transformer/StepFunctions.h"
#include "lib/Cost/OfSpec.h"
#include "lib/Spec/Words.h"
#include "meshwork/Text/Counted.h"
#include "passes/memory/Layers.h"
#include "tools/meshwork/driver/search/Autos.h"
#include "tools/meshwork/driver/search/Line.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

using spec::Recompute;
using Policies = std::vector<Recompute>; // of each layer

/// Of layers, the first so many parts of which may be offloaded: what they keep
/// waits longest.
constexpr int64_t parts = 4;

int64_t layersOf(ModuleOp module) {
  int64_t layers = 1;
  module.walk([&](func::FuncOp function) { // of each rank of a pipeline
    if (transformer::roleOf(function) == transformer::StepFunction::microbatch)
      layers = std::max(layers, memory::Layers(function).count());
  });
  return layers;
}

/// Policies number `step` of the line, but for the offloaded layers.
Policies policiesAt(int64_t step, int64_t layers, int64_t offloaded) {
  bool isUpper = step >= layers;
  Policies result(layers, isUpper ? Recompute::selective : Recompute::full);
  int64_t more = isUpper ? step - layers : step;
  std::fill(result.end() - more, result.end(),
            isUpper ? Recompute::none : Recompute::selective);
  std::fill(result.begin(), result.begin() + offloaded, Recompute::offload);
  return result;
}

/// What keeps most of what fits, for each number of offloaded layers.
FailureOr<std::vector<Tried<Policies>>> mostOfEach(const AtChoice &at,
                                                   uint64_t limit) {
  int64_t layers = layersOf(at.module);
  Copies copies{at.module, "recompute"};
  std::vector<Tried<Policies>> found;
  for (int64_t part = 0; part <= (at.spec.offload.activations ? parts : 0);
       ++part) {
    int64_t offloaded = llvm::divideCeil(layers * part, parts);
    auto compile = [&](int64_t step) {
      spec::Spec with = at.spec;
      with.recomputeOfLayers = policiesAt(step, layers, offloaded);
      return copies.compile(with);
    };
    auto most = mostThatFits({{2 * layers, layers, 0}}, limit, compile);
    if (failed(most))
      return failure();
    found.push_back({policiesAt(most->way, layers, offloaded), most->trial});
  }
  return found;
}
} // namespace

LogicalResult chooseRecompute(const AtChoice &at) {
  if (at.spec.recompute != Recompute::byBudget)
    return success();
  uint64_t limit = cost::memoryLimit(at.spec)->bytes;
  FailureOr<std::vector<Tried<Policies>>> found = mostOfEach(at, limit);
  if (failed(found))
    return failure();
  const Tried<Policies> *best = bestOf(*found, limit);
  const Policies &policies = best ? best->way : found->front().way;
  at.spec.recomputeOfLayers = policies;
  at.said.add([&](auto &os) {
    os << "recompute:";
    for (Recompute policy : {Recompute::full, Recompute::offload,
                             Recompute::selective, Recompute::none})
      if (int64_t count = llvm::count(policies, policy))
        os << " " << spec::wordOf(policy) << " in " << counted(count, "layer");
  });
  return success();
}

} // namespace meshwork::driver
