// Which layer an op belongs to, and how layers are shared out.
#include "passes/pipeline/Stages.h"

#include "dialects/transformer/Facts.h"
#include <numeric>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipeline {

LayersOfOps::LayersOfOps(func::FuncOp microbatch)
    : block(microbatch.getBody().front()) {
  bool isAfterHead = false;
  for (Operation &op : block) {
    isAfterHead |= isHead(&op) || transformer::isBackward(&op);
    if (isAfterHead)
      backward.insert(&op);
    if (isa<transformer::ParameterOp>(op)) {
      numLayers = std::max(numLayers, layerOf(&op).value_or(-1) + 1);
      continue;
    }
    if (isTable(&op)) {
      tables.insert(&op);
      continue;
    }
    if (std::optional<int64_t> layer = follow(&op))
      layers[&op] = *layer;
  }
}

/// What is made of nothing that a layer has, and its parts: each stage makes
/// its own, whatever layer was the first to ask for it.
bool LayersOfOps::isTable(Operation *op) const {
  return op->getNumResults() != 0 && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return tables.contains(operand.getDefiningOp());
         });
}

/// The op's own; else the last one of what a forward op reads, and the first
/// one of the gradients that a backward op reads.
std::optional<int64_t> LayersOfOps::follow(Operation *op) const {
  if (auto own = layerOf(op); own && op->getNumOperands() != 0)
    return own;
  std::optional<int64_t> last, firstGradient;
  for (Value operand : op->getOperands()) {
    std::optional<int64_t> layer = of(operand.getDefiningOp());
    if (!layer)
      continue;
    last = std::max(last.value_or(*layer), *layer);
    if (isInBackward(operand.getDefiningOp()))
      firstGradient = std::min(firstGradient.value_or(*layer), *layer);
  }
  return firstGradient ? firstGradient : last;
}

std::optional<int64_t> LayersOfOps::of(Operation *op) const {
  auto known = layers.find(op);
  return known == layers.end() ? std::nullopt
                               : std::optional<int64_t>(known->second);
}

std::optional<int64_t> LayersOfOps::firstEmpty() const {
  llvm::SmallDenseSet<int64_t> used;
  for (auto [op, layer] : layers)
    used.insert(layer);
  for (int64_t layer = 0; layer < numLayers; ++layer)
    if (!used.contains(layer))
      return layer;
  return std::nullopt;
}

SmallVector<double> LayersOfOps::flops() const {
  SmallVector<double> flops(numLayers, 0);
  for (Operation &op : block)
    if (auto counted = dyn_cast<FactorOpInterface>(op))
      if (std::optional<int64_t> layer = of(&op))
        flops[*layer] += static_cast<double>(counted.getFlops());
  return flops;
}

namespace {
/// How many stages it takes, from the first layer on, if none costs more than
/// `limit`.
int64_t stagesWithin(ArrayRef<double> costs, double limit) {
  int64_t stages = 0;
  double left = -1;
  for (double cost : costs) {
    if (cost > left) {
      ++stages;
      left = limit;
    }
    left -= cost;
  }
  return stages;
}

/// The smallest limit that so many stages keep, or very little more.
double leastLimit(ArrayRef<double> costs, int64_t stages) {
  double low = *llvm::max_element(costs),
         high = std::accumulate(costs.begin(), costs.end(), 0.0);
  for (int halving = 0; halving < 60; ++halving) {
    double middle = (low + high) / 2;
    (stagesWithin(costs, middle) <= stages ? high : low) = middle;
  }
  return stagesWithin(costs, low) <= stages ? low : high;
}

/// Layers without a product count as one each.
SmallVector<double> countedCosts(ArrayRef<double> costs) {
  SmallVector<double> of(costs);
  if (llvm::all_of(of, [](double cost) { return cost == 0; }))
    llvm::fill(of, 1.0);
  return of;
}

/// Layers of stages that cost at most `limit`, from the last stage on; nothing
/// where some are left.
std::optional<SmallVector<int64_t>> fillUp(ArrayRef<double> costs,
                                           ArrayRef<int32_t> rankOf,
                                           ArrayRef<int64_t> mostOfRank,
                                           double limit) {
  SmallVector<int64_t> more(mostOfRank), layers;
  for (int32_t rank : rankOf) // Each stage has one.
    if (--more[rank] < 0)
      return std::nullopt;
  auto rest = static_cast<int64_t>(costs.size());
  for (auto before = static_cast<int64_t>(rankOf.size()); before-- > 0;) {
    int64_t first = rest - 1, &left = more[rankOf[before]];
    double sum = costs[first];
    while (first > before && left > 0 && sum + costs[first - 1] <= limit) {
      sum += costs[--first];
      --left;
    }
    layers.push_back(rest - first);
    rest = first;
  }
  std::reverse(layers.begin(), layers.end());
  return rest == 0 ? std::optional(layers) : std::nullopt;
}
} // namespace

std::optional<SmallVector<int64_t>>
balanceWithin(ArrayRef<double> costs, ArrayRef<int32_t> rankOf,
              ArrayRef<int64_t> mostOfRank) {
  SmallVector<double> of = countedCosts(costs);
  double low = *llvm::max_element(of),
         high = 2 * std::accumulate(of.begin(), of.end(), 0.0);
  auto best = fillUp(of, rankOf, mostOfRank, high);
  for (int halving = 0; best && halving < 60; ++halving) {
    double middle = (low + high) / 2;
    auto layers = fillUp(of, rankOf, mostOfRank, middle);
    (layers ? high : low) = middle;
    if (layers)
      best = std::move(layers);
  }
  return best;
}

double slowestStage(ArrayRef<double> costs, ArrayRef<int64_t> layers) {
  SmallVector<double> of = countedCosts(costs);
  double slowest = 0;
  ArrayRef<double> rest = of;
  for (int64_t count : layers) {
    double sum = 0;
    for (double cost : rest.take_front(count))
      sum += cost;
    slowest = std::max(slowest, sum);
    rest = rest.drop_front(count);
  }
  return slowest;
}

SmallVector<int64_t> balance(ArrayRef<double> costs, int64_t stages) {
  SmallVector<double> of = countedCosts(costs);
  // Sums from the other end may round to more.
  double limit = leastLimit(of, stages) * (1 + 1e-9);
  SmallVector<int64_t> layers;
  // From the last stage on: the first one, which keeps the most microbatches,
  // gets what is left.
  int64_t rest = of.size();
  for (int64_t before = stages - 1; before > 0; --before) {
    int64_t first = rest - 1;
    double sum = of[first];
    while (first > before && sum + of[first - 1] <= limit)
      sum += of[--first];
    layers.push_back(rest - first);
    rest = first;
  }
  layers.push_back(rest);
  std::reverse(layers.begin(), layers.end());
  return layers;
}

} // namespace meshwork::pipeline
