#include "tools/meshwork/driver/FitLayers.h"

#include "dialects/transformer/StepFunctions.h"
#include "lib/Cost/OfSpec.h"
#include "lib/Schedules/Generate.h"
#include "lib/Spec/ScheduleNames.h"
#include "lib/Spec/Words.h"
#include "passes/pipeline/Stages.h"
#include "tools/meshwork/driver/Choices.h"
#include "tools/meshwork/driver/LayerMemory.h"
#include "tools/meshwork/driver/Trial.h"

#include <set>

using namespace mlir;

namespace meshwork::driver {
namespace {

using Layers = std::vector<int64_t>;

struct Layout {
  Layers layers; // of each virtual stage
  uint64_t bytes = 0;
  double slowest = 0; // stage, in flops
  bool fits = false;
};

bool isBetter(const Layout &a, const Layout &b) {
  if (a.fits != b.fits)
    return a.fits;
  return a.fits ? a.slowest < b.slowest : a.bytes < b.bytes;
}

FailureOr<Trial> tryWith(OwningOpRef<ModuleOp> &copy, ModuleOp module,
                         spec::Spec spec, const Layers &layers) {
  copy = module.clone();
  spec.pipeline.fittedLayers = layers;
  return tryPhases(*copy, spec, "pipeline");
}

/// With one spec, all else of it chosen.
class Search {
public:
  Search(ModuleOp module, const spec::Spec &spec, ArrayRef<double> costs)
      : module(module), spec(spec), costs(costs),
        budget(cost::memoryLimit(spec)->bytes),
        memory(spec.stageRanks(), costs.size()) {}

  /// The first layout is the balanced one.
  /// `balanced` is what the phases leave of that.
  FailureOr<Layout> run(OwningOpRef<ModuleOp> &balanced) {
    FailureOr<Trial> first = tryWith(balanced, module, spec, {});
    if (failed(first))
      return failure();
    rankOf = first->rankOf;
    Layers layers = toVector(pipeline::balance(costs, rankOf.size()));
    best = note(layers, *first);
    while (tried.size() < mostTrials && !(best.fits && tried.size() == 1)) {
      layers = next();
      if (tried.contains(layers))
        break;
      OwningOpRef<ModuleOp> copy;
      FailureOr<Trial> trial = tryWith(copy, module, spec, layers);
      if (failed(trial))
        return failure();
      Layout layout = note(layers, *trial);
      if (isBetter(layout, best))
        best = layout;
    }
    return best;
  }

private:
  /// Two or three tell what a layer takes, and one or two what fits.
  static constexpr size_t mostTrials = 10;

  static Layers toVector(ArrayRef<int64_t> layers) {
    return {layers.begin(), layers.end()};
  }

  Layout note(const Layers &layers, const Trial &trial) {
    tried.insert(layers);
    std::vector<int64_t> ofRank(spec.stageRanks(), 0);
    for (auto [rank, count] : llvm::zip_equal(rankOf, layers))
      ofRank[rank] += count;
    memory.add(ofRank, trial.bytesOfRanks);
    return {layers, trial.bytes, pipeline::slowestStage(costs, layers),
            trial.bytes <= budget};
  }

  std::optional<SmallVector<int64_t>> within(uint64_t bytes) const {
    return pipeline::balanceWithin(costs, rankOf, memory.mostWithin(bytes));
  }

  /// The best that should fit; else the one that should need least.
  Layers next() const {
    if (auto fitting = within(budget))
      return toVector(*fitting);
    uint64_t low = budget, high = best.bytes; // which a layout keeps
    while (high - low > 1) {
      uint64_t middle = low + (high - low) / 2;
      (within(middle) ? high : low) = middle;
    }
    auto nearest = within(high);
    return nearest ? toVector(*nearest) : best.layers;
  }

  ModuleOp module;
  const spec::Spec &spec;
  ArrayRef<double> costs;
  uint64_t budget;
  LayerMemory memory;
  std::vector<int32_t> rankOf; // of virtual stages
  std::set<Layers> tried;
  Layout best;
};

class Fit {
public:
  Fit(ModuleOp module, const spec::Spec &spec, func::FuncOp microbatch)
      : module(module), spec(spec),
        costs(pipeline::LayersOfOps(microbatch).flops()) {}

  FailureOr<Layers> run(OwningOpRef<ModuleOp> &finished) {
    if (static_cast<int64_t>(costs.size()) <= stages())
      return Layers{};
    OwningOpRef<ModuleOp> balanced;
    FailureOr<Layout> loose = search(spec, balanced);
    if (failed(loose))
      return failure();
    if (isBalanced(*loose)) {
      if (isAllChosen())
        finished = std::move(balanced);
      return Layers{};
    }
    spec::Spec tight = tightest();
    if (tight.recompute == spec.recompute &&
        tight.pipeline.kept == spec.pipeline.kept)
      return loose->layers;
    FailureOr<Layout> other = search(tight, balanced);
    if (failed(other))
      return failure();
    return chosen(*loose, *other);
  }

private:
  int64_t stages() const {
    const spec::Pipeline &pipeline = spec.pipeline;
    return int64_t{spec.stageRanks()} *
           (pipeline.virtualStages > 0
                ? pipeline.virtualStages
                : schedules::ownVirtualStages(pipeline.schedule));
  }
  bool isBalanced(const Layout &layout) const {
    return layout.fits &&
           ArrayRef(layout.layers) ==
               ArrayRef(pipeline::balance(costs, layout.layers.size()));
  }
  FailureOr<Layout> search(const spec::Spec &with,
                           OwningOpRef<ModuleOp> &balanced) {
    return Search(module, with, costs).run(balanced);
  }
  bool isAllChosen() const {
    return spec.recompute != spec::Recompute::byBudget &&
           spec.pipeline.schedule != spec::wordOf(spec::Schedule::best);
  }

  /// With all that is left to choose as it needs least.
  spec::Spec tightest() const {
    spec::Spec tight = spec;
    if (spec.recompute == spec::Recompute::byBudget)
      tight.recompute = spec::Recompute::full;
    if (spec.pipeline.schedule == spec::wordOf(spec::Schedule::best))
      tight.pipeline.kept = std::max(1u, spec.pipeline.virtualStages);
    return tight;
  }

  FailureOr<Layers> chosen(const Layout &loose, const Layout &tight) {
    if (!loose.fits)
      return tight.fits && isBalanced(tight) ? Layers{} : tight.layers;
    if (!tight.fits || tight.layers == loose.layers)
      return loose.layers;
    FailureOr<Trial> moved = complete(loose.layers),
                     kept = complete(tight.layers);
    if (failed(moved) || failed(kept))
      return failure();
    bool isFaster = moved->seconds < kept->seconds;
    if (isFaster || kept->bytes > cost::memoryLimit(spec)->bytes)
      return loose.layers;
    return isBalanced(tight) ? Layers{} : tight.layers;
  }

  /// As the plan will be, the other choices made.
  FailureOr<Trial> complete(const Layers &layers) {
    spec::Spec all = spec;
    all.pipeline.fittedLayers = layers;
    OwningOpRef<ModuleOp> copy(module.clone());
    return tryChoosing(*copy, all, "pipeline");
  }

  ModuleOp module;
  const spec::Spec &spec;
  SmallVector<double> costs;
};
} // namespace

LogicalResult fitLayers(ModuleOp module, spec::Spec &spec,
                        OwningOpRef<ModuleOp> &finished) {
  auto microbatch =
      transformer::functionOf(module, transformer::StepFunction::microbatch);
  if (!cost::memoryLimit(spec) || spec.stageRanks() == 1 ||
      !spec.pipeline.layers.empty() || !spec.pipeline.fittedLayers.empty() ||
      !microbatch)
    return success();
  FailureOr<Layers> layers = Fit(module, spec, microbatch).run(finished);
  if (failed(layers))
    return failure();
  spec.pipeline.fittedLayers = *layers;
  return success();
}

} // namespace meshwork::driver
