#include "lib/Plan/Replicas.h"
#include "lib/Plan/Programs.h"
#include "lib/Plan/SameViews.h"
#include <algorithm>

namespace meshwork::plan {
namespace {
bool contains(const std::vector<uint32_t> &axes, uint32_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Coordinates along `axes` of their row-major position `number`.
std::vector<uint32_t> coordinates(const Plan &plan,
                                  const std::vector<uint32_t> &axes,
                                  uint64_t number) {
  std::vector<uint32_t> at(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    uint32_t size = plan.mesh()->Get(axes[i])->size();
    at[i] = static_cast<uint32_t>(number % size);
    number /= size;
  }
  return at;
}
} // namespace

std::vector<uint32_t> axesOf(const Sharded &sharded) {
  std::vector<uint32_t> axes;
  for (const AxisList *dim : orEmpty(sharded.dims()))
    axes.insert(axes.end(), orEmpty(dim->axes()).begin(),
                orEmpty(dim->axes()).end());
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool sameSplit(const Sharded &a, const Sharded &b) {
  const auto &left = orEmpty(a.dims()), &right = orEmpty(b.dims());
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const AxisList *one, const AxisList *other) {
                      return sameNumbers(one->axes(), other->axes()) &&
                             sameNumbers(one->layouts(), other->layouts());
                    });
}

Replica replicaOf(const Plan &plan, uint32_t rank,
                  const std::vector<uint32_t> &named,
                  const std::vector<bool> &holds) {
  std::vector<uint32_t> deciding(orEmpty(plan.program_axes()).begin(),
                                 orEmpty(plan.program_axes()).end());
  auto own = [&](uint32_t axis) { return coordinateOf(plan, rank, axis); };
  uint64_t choices = 1, mine = 0;
  for (uint32_t axis : deciding) {
    choices *= plan.mesh()->Get(axis)->size();
    mine = mine * plan.mesh()->Get(axis)->size() + own(axis);
  }
  Replica replica{0, 0};
  for (uint64_t number = 0; number < choices; ++number) {
    std::vector<uint32_t> at = coordinates(plan, deciding, number);
    bool isOne = holds[programNumber(plan, number)];
    for (size_t i = 0; i < at.size(); ++i)
      isOne &= !contains(named, deciding[i]) || at[i] == own(deciding[i]);
    replica.index += isOne && number < mine;
    replica.count += isOne;
  }
  for (uint32_t axis = 0; axis < plan.mesh()->size(); ++axis) {
    if (contains(named, axis) || contains(deciding, axis))
      continue;
    uint32_t size = plan.mesh()->Get(axis)->size();
    replica = {replica.index * size + own(axis), replica.count * size};
  }
  return replica;
}

uint32_t firstRankOf(const Plan &plan, uint64_t choice) {
  std::vector<uint32_t> axes(orEmpty(plan.program_axes()).begin(),
                             orEmpty(plan.program_axes()).end());
  std::vector<uint32_t> at = coordinates(plan, axes, choice);
  uint32_t rank = 0;
  for (uint32_t axis = 0; axis < plan.mesh()->size(); ++axis) {
    rank *= plan.mesh()->Get(axis)->size();
    for (size_t i = 0; i < axes.size(); ++i)
      rank += axes[i] == axis ? at[i] : 0;
  }
  return rank;
}

} // namespace meshwork::plan
