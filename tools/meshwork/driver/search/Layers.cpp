#include "dialects/transformer/StepFunctions.h"
#include "lib/Cost/OfSpec.h"
#include "lib/Schedules/Generate.h"
#include "lib/Spec/ScheduleNames.h"
#include "lib/Spec/Words.h"
#include "passes/pipeline/Stages.h"
#include "tools/meshwork/driver/Choices.h"
#include "tools/meshwork/driver/search/Autos.h"
#include "tools/meshwork/driver/search/LayerMemory.h"
#include "tools/meshwork/driver/search/Search.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

using Layers = std::vector<int64_t>; // of each virtual stage
using Layout = Tried<Layers>;

Layers toVector(ArrayRef<int64_t> layers) {
  return {layers.begin(), layers.end()};
}

/// Layouts of a spec, with all else of it chosen. Each tells what the next one
/// should need.
class Layouts {
public:
  Layouts(const AtChoice &at, ArrayRef<double> costs)
      : copies{at.module, "pipeline"}, costs(costs),
        limit(cost::memoryLimit(at.spec)->bytes) {}

  const Layers &balance() const { return balanced; }
  bool isBalanced(const Layout &layout) const {
    return fits(layout.trial, limit) && layout.way == balanced;
  }

  /// The best. The first is balanced: `left` gets what the phases leave of it.
  FailureOr<Layout> search(const spec::Spec &spec,
                           OwningOpRef<ModuleOp> &left) {
    left = copies.copy();
    Outcome first = copies.compile(*left, spec);
    if (failed(first))
      return failure();
    if (!*first)
      return Layout{};
    rankOf = (*first)->rankOf;
    balanced =
        toVector(pipeline::balance(costs, static_cast<int64_t>(rankOf.size())));
    LayerMemory memory(spec.stageRanks(), static_cast<int64_t>(costs.size()));
    auto tried = tryWays<Layers>(
        [&](ArrayRef<Layout> before) { return next(before, memory); },
        [&](const Layers &layers) { return compile(layers, spec); },
        {{balanced, judged(balanced, *first)}});
    if (failed(tried))
      return failure();
    return *bestOf(*tried, limit);
  }

private:
  /// Two or three tell what a layer takes, and one or two what fits.
  static constexpr size_t mostTrials = 10;

  /// Recompute and the schedule are yet to be chosen, so a step tells nothing.
  /// The slowest stage, in flops, stands for it.
  std::optional<Trial> judged(const Layers &layers,
                              std::optional<Trial> trial) const {
    if (trial)
      trial->seconds = pipeline::slowestStage(costs, layers);
    return trial;
  }

  Outcome compile(const Layers &layers, spec::Spec spec) const {
    spec.pipeline.fittedLayers = layers;
    Outcome outcome = copies.compile(spec);
    if (failed(outcome))
      return failure();
    return judged(layers, std::move(*outcome));
  }

  /// A layout that is refused tells nothing, and ends it.
  std::optional<Layers> next(ArrayRef<Layout> tried,
                             LayerMemory &memory) const {
    const Layout &last = tried.back();
    if (!last.trial || tried.size() >= mostTrials ||
        isBalanced(*bestOf(tried, limit)))
      return std::nullopt;
    memory.add(layersOfRanks(last), last.trial->bytesOfRanks);
    Layers layers = promising(memory, *bestOf(tried, limit));
    auto isSame = [&](const Layout &one) { return one.way == layers; };
    return llvm::any_of(tried, isSame) ? std::nullopt : std::optional(layers);
  }

  std::vector<int64_t> layersOfRanks(const Layout &layout) const {
    std::vector<int64_t> layers(layout.trial->bytesOfRanks.size(), 0);
    for (auto [rank, count] : llvm::zip_equal(rankOf, layout.way))
      layers[rank] += count;
    return layers;
  }

  /// The best that should fit; else the one that should need least.
  Layers promising(const LayerMemory &memory, const Layout &best) const {
    auto within = [&](uint64_t bytes) {
      return pipeline::balanceWithin(costs, rankOf, memory.mostWithin(bytes));
    };
    if (auto fitting = within(limit))
      return toVector(*fitting);
    uint64_t low = limit, high = best.trial->bytes; // which a layout keeps
    while (high - low > 1) {
      uint64_t middle = low + (high - low) / 2;
      (within(middle) ? high : low) = middle;
    }
    auto nearest = within(high);
    return nearest ? toVector(*nearest) : best.way;
  }

  Copies copies;
  ArrayRef<double> costs;
  uint64_t limit;
  std::vector<int32_t> rankOf; // of virtual stages
  Layers balanced;
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
FailureOr<Layers> layersOf(const AtChoice &at, Layouts layouts) {
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
      *layers == layouts.balance())
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
  FailureOr<Layers> layers = layersOf(at, Layouts(at, costs));
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
