#include "tools/meshwork/driver/FitZero.h"

#include "lib/Cost/OfSpec.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/meshwork/driver/Choices.h"

using namespace mlir;

namespace meshwork::driver {
namespace {
using spec::Gathered, spec::Reduce;

/// Axes of ZeRO with several ranks, outermost first: the slowest links.
std::vector<std::string> axesOf(const spec::Spec &spec) {
  std::vector<std::string> axes;
  for (const spec::Axis &axis : spec.mesh)
    if (axis.size > 1 && llvm::is_contained(spec.zero.axes, axis.name))
      axes.push_back(axis.name);
  return axes;
}

/// All axes stay split, fewer and fewer of the inner ones, none.
std::vector<spec::Zero> waysToGather(const spec::Spec &spec) {
  if (spec.zero.stage != 3 || spec.zero.gathered != Gathered::byCost)
    return {spec.zero};
  std::vector<spec::Zero> ways(1, spec.zero);
  ways.back().gathered = Gathered::free;
  std::vector<std::string> inner = axesOf(spec);
  while (inner.size() > 1) {
    inner.erase(inner.begin());
    ways.push_back(ways.front());
    ways.back().inner = inner;
  }
  ways.push_back(ways.front());
  ways.back().gathered = Gathered::keep;
  return ways;
}

} // namespace

std::vector<spec::Zero> waysOfZero(const spec::Spec &spec) {
  std::vector<spec::Zero> ways;
  bool isOpen = spec.zero.stage >= 2 && spec.zero.reduce == Reduce::byCost;
  for (const spec::Zero &one : waysToGather(spec)) {
    ways.push_back(one);
    if (!isOpen)
      continue;
    ways.back().reduce = Reduce::microbatch;
    if (spec.microbatches() == 1) // Then both reduce once.
      continue;
    ways.push_back(ways.back());
    ways.back().reduce = Reduce::step;
  }
  return ways;
}

namespace {
/// Nothing where the spec is refused.
FailureOr<std::optional<Trial>> tryWay(ModuleOp module, spec::Spec spec,
                                       const spec::Zero &zero) {
  spec.zero = zero;
  OwningOpRef<ModuleOp> copy(module.clone());
  QuietTrials quiet(module.getContext());
  FailureOr<Trial> tried = tryChoosing(*copy, spec, "shard");
  if (succeeded(tried))
    return std::optional(*tried);
  if (quiet.areRefused())
    return std::optional<Trial>();
  quiet.tell();
  return failure();
}

bool isBetter(const ZeroChoice &a, const ZeroChoice &b, uint64_t budget) {
  bool fits = a.bytes <= budget;
  if (fits != (b.bytes <= budget))
    return fits;
  return fits ? std::pair(a.seconds, a.bytes) < std::pair(b.seconds, b.bytes)
              : a.bytes < b.bytes;
}
} // namespace

FailureOr<ZeroChoice> fitZero(ModuleOp module, const spec::Spec &spec) {
  std::vector<spec::Zero> ways = waysOfZero(spec);
  uint64_t budget = cost::memoryLimit(spec)->bytes;
  std::optional<ZeroChoice> best;
  for (const spec::Zero &way : ways) {
    FailureOr<std::optional<Trial>> tried = tryWay(module, spec, way);
    if (failed(tried))
      return failure();
    if (!*tried)
      continue;
    ZeroChoice choice{way, (*tried)->bytes, (*tried)->seconds};
    if (!best || isBetter(choice, *best, budget))
      best = choice;
  }
  // What is refused is told when the first is compiled.
  return best.value_or(ZeroChoice{ways.front()});
}

} // namespace meshwork::driver
