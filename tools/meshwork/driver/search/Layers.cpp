#include "dialects/transformer/StepFunctions.h"
#include "lib/Cost/OfSpec.h"
#include "lib/Schedules/Generate.h"
#include "lib/Spec/ScheduleNames.h"
#include "lib/Spec/Words.h"
#include "passes/pipeline/Stages.h"
#include "tools/meshwork/driver/Choices.h"
#include "tools/meshwork/driver/search/Autos.h"
#include "tools/meshwork/driver/search/Layouts.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

/// What is compiled for a spec, from the layers on, with all else of it chosen.
class Compiling {
public:
  Compiling(const AtChoice &at, ArrayRef<double> costs)
      : copies{at.module, "pipeline"}, costs(costs),
        limit(cost::memoryLimit(at.spec)->bytes) {}

  /// The best layout. The first is balanced: `left` gets what the phases leave
  /// of it. No layers where that is refused.
  FailureOr<Layout> search(const spec::Spec &spec,
                           OwningOpRef<ModuleOp> &left) {
    left = copies.copy();
    Outcome first = copies.compile(*left, spec);
    if (failed(first))
      return failure();
    if (!*first)
      return Layout{};
    layouts.emplace(costs, (*first)->rankOf, spec.stageRanks(), limit);
    return layouts->search(**first, [&](const Layers &layers) {
      spec::Spec with = spec;
      with.pipeline.fittedLayers = layers;
      return copies.compile(with);
    });
  }

  bool isBalanced(const Layout &layout) const {
    return layouts && layouts->isBalanced(layout);
  }
  bool isBalance(const Layers &layers) const {
    return layouts && layouts->balance() == layers;
  }

private:
  Copies copies;
  ArrayRef<double> costs;
  uint64_t limit;
  std::optional<Layouts> layouts;
};

bool isScheduleOpen(const spec::Spec &spec) {
  return spec.pipeline.schedule == spec::wordOf(spec::Schedule::best);
}

/// With all that is left to choose as it needs least; nothing where nothing is.
std::optional<spec::Spec> tightest(const spec::Spec &spec) {
  spec::Spec tight = spec;
  if (spec.recompute == spec::Recompute::byBudget)
    tight.recompute = spec::Recompute::full;
  if (isScheduleOpen(spec))
    tight.pipeline.kept = std::max(1u, spec.pipeline.virtualStages);
  bool isOther = tight.recompute != spec.recompute ||
                 tight.pipeline.kept != spec.pipeline.kept;
  return isOther ? std::optional(tight) : std::nullopt;
}

/// Of two layouts the one that is better with all choices made. An empty one
/// stands for a balanced one that fits.
FailureOr<Layers> complete(const AtChoice &at, const Layout &loose,
                           const Layout &tight) {
  uint64_t limit = cost::memoryLimit(at.spec)->bytes;
  if (!fits(loose.trial, limit))
    return tight.way;
  if (!fits(tight.trial, limit) || tight.way == loose.way)
    return loose.way;
  Copies copies{at.module, "pipeline", tryChoosing};
  auto tried = tryAll<Layers>({tight.way, loose.way}, [&](const Layers &way) {
    spec::Spec with = at.spec;
    with.pipeline.fittedLayers = way;
    return copies.compile(with);
  });
  if (failed(tried))
    return failure();
  const Layout *best = bestOf(*tried, limit);
  return best ? best->way : loose.way;
}

/// Empty: the balanced ones stay.
FailureOr<Layers> layersOf(const AtChoice &at, Compiling layouts) {
  OwningOpRef<ModuleOp> left, unused;
  FailureOr<Layout> loose = layouts.search(at.spec, left);
  if (failed(loose))
    return failure();
  std::optional<spec::Spec> tight = tightest(at.spec);
  if (layouts.isBalanced(*loose)) {
    if (!tight)
      at.finished = std::move(left);
    return Layers{};
  }
  if (!tight)
    return loose->way;
  FailureOr<Layout> other = layouts.search(*tight, unused);
  if (failed(other))
    return failure();
  FailureOr<Layers> layers = complete(at, *loose, *other);
  if (succeeded(layers) && layouts.isBalanced(*other) &&
      layouts.isBalance(*layers))
    return Layers{};
  return layers;
}

int64_t stagesOf(const spec::Spec &spec) {
  const spec::Pipeline &pipeline = spec.pipeline;
  return int64_t{spec.stageRanks()} *
         (pipeline.virtualStages > 0
              ? pipeline.virtualStages
              : schedules::ownVirtualStages(pipeline.schedule));
}
} // namespace

LogicalResult chooseLayers(const AtChoice &at) {
  spec::Spec &spec = at.spec;
  auto microbatch =
      transformer::functionOf(at.module, transformer::StepFunction::microbatch);
  if (!cost::memoryLimit(spec) || spec.stageRanks() == 1 ||
      !spec.pipeline.layers.empty() || !spec.pipeline.fittedLayers.empty() ||
      !microbatch)
    return success();
  SmallVector<double> costs = pipeline::LayersOfOps(microbatch).flops();
  if (static_cast<int64_t>(costs.size()) <= stagesOf(spec))
    return success();
  FailureOr<Layers> layers = layersOf(at, Compiling(at, costs));
  if (failed(layers))
    return failure();
  spec.pipeline.fittedLayers = *layers;
  if (!layers->empty())
    at.said.add([&](auto &os) {
      os << "layers: [";
      llvm::interleaveComma(*layers, os);
      os << "], for " << cost::memoryLimit(spec)->from;
    });
  return success();
}

} // namespace meshwork::driver
