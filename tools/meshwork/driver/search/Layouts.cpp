#include "tools/meshwork/driver/search/Layouts.h"

#include "passes/pipeline/Stages.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

/// Two or three tell what a layer takes, and one or two what fits.
constexpr size_t mostTrials = 10;

Layers toVector(ArrayRef<int64_t> layers) {
  return {layers.begin(), layers.end()};
}
} // namespace

Layouts::Layouts(ArrayRef<double> costs, std::vector<int32_t> stages,
                 size_t ranks, uint64_t limit)
    : costs(costs), rankOf(std::move(stages)), ranks(ranks), limit(limit),
      balanced(toVector(
          pipeline::balance(costs, static_cast<int64_t>(rankOf.size())))) {}

FailureOr<Layout>
Layouts::search(Trial first,
                llvm::function_ref<Outcome(const Layers &)> compile) {
  LayerMemory memory(ranks, static_cast<int64_t>(costs.size()));
  auto tried = tryWays<Layers>(
      [&](ArrayRef<Layout> before) { return next(before, memory); },
      [&](const Layers &layers) -> Outcome {
        Outcome outcome = compile(layers);
        if (failed(outcome))
          return failure();
        return judged(layers, std::move(*outcome));
      },
      {{balanced, judged(balanced, std::move(first))}});
  if (failed(tried))
    return failure();
  return *bestOf(*tried, limit);
}

/// Recompute and the schedule are yet to be chosen, so a step tells nothing.
/// The slowest stage, in flops, stands for it.
std::optional<Trial> Layouts::judged(const Layers &layers,
                                     std::optional<Trial> trial) const {
  if (trial)
    trial->seconds = pipeline::slowestStage(costs, layers);
  return trial;
}

/// A layout that is refused tells nothing, and ends it.
std::optional<Layers> Layouts::next(ArrayRef<Layout> tried,
                                    LayerMemory &memory) const {
  const Layout &last = tried.back();
  if (!last.trial || tried.size() >= mostTrials ||
      isBalanced(*bestOf(tried, limit)))
    return std::nullopt;
  memory.add(layersOfRanks(last.way), last.trial->bytesOfRanks);
  Layers layers = promising(memory, *bestOf(tried, limit));
  auto isSame = [&](const Layout &one) { return one.way == layers; };
  return llvm::any_of(tried, isSame) ? std::nullopt : std::optional(layers);
}

std::vector<int64_t> Layouts::layersOfRanks(const Layers &layers) const {
  std::vector<int64_t> ofRanks(ranks, 0);
  for (auto [rank, count] : llvm::zip_equal(rankOf, layers))
    ofRanks[rank] += count;
  return ofRanks;
}

/// The best that should fit; else the one that should need least.
Layers Layouts::promising(const LayerMemory &memory, const Layout &best) const {
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

} // namespace meshwork::driver
