#include "tools/meshwork/driver/search/Zero.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Spec/Words.h"
#include "tools/meshwork/driver/Choices.h"
#include "tools/meshwork/driver/search/Autos.h"
#include "tools/meshwork/driver/search/Search.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

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

bool isZeroOpen(const spec::Spec &spec) { return spec.zero.hasChoice(); }

LogicalResult chooseZero(const AtChoice &at) {
  spec::Spec &spec = at.spec;
  if (!isZeroOpen(spec))
    return success();
  Copies copies{at.module, "shard", tryChoosing};
  std::vector<spec::Zero> ways = waysOfZero(spec);
  auto tried = tryAll<spec::Zero>(ways, [&](const spec::Zero &way) {
    spec::Spec with = spec;
    with.zero = way;
    return copies.compile(with);
  });
  if (failed(tried))
    return failure();
  const Tried<spec::Zero> *best =
      bestOf(*tried, cost::memoryLimit(spec)->bytes);
  spec.zero = best ? best->way : ways.front();
  at.said.add([&](auto &os) {
    for (const char *key : {"zero.gathered", "zero.reduce"})
      if (std::optional<std::string> value = spec::valueOf(spec, key))
        os << key << " = " << *value << "; ";
    os << "a step should take "
       << llvm::format("%.3g ms", best ? best->trial->seconds * 1e3 : 0.0);
  });
  return success();
}

} // namespace meshwork::driver
