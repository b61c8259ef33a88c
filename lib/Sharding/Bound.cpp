#include "lib/Sharding/Bound.h"

#include <algorithm>

namespace meshwork::sharding {

Bound::Bound(const Problem &problem)
    : problem(problem), goal(problem, problem.to),
      goalElements(goal.elements()) {}

/// What the rank holds whose coordinate on axis i is bit i of `rank`.
Bound::Range Bound::rangeOf(const Layout &layout, int dim,
                            unsigned rank) const {
  Range range{0, problem.shape[dim]};
  for (int i = 0; i < layout.count[dim]; ++i) {
    int64_t block = layout.extents[dim][i + 1];
    int64_t begin = range.begin + (rank >> layout.axes[dim][i] & 1) * block;
    range = {std::min(begin, range.end), std::min(begin + block, range.end)};
  }
  return range;
}

int64_t Bound::elements(const Layout &layout) const {
  bool partial = layout.count[State::partial] > 0;
  int64_t most = goalElements - layout.elements();
  for (unsigned rank : coordinates) {
    int64_t needed = 1, held = partial ? 0 : 1;
    for (int dim = 0; dim < layout.numDims; ++dim) {
      Range want = rangeOf(goal, dim, rank);
      Range have = rangeOf(layout, dim, rank);
      needed *= want.end - want.begin;
      held *= std::max<int64_t>(0, std::min(want.end, have.end) -
                                       std::max(want.begin, have.begin));
    }
    most = std::max(most, needed - held);
  }
  return std::max<int64_t>(most, 0);
}

} // namespace meshwork::sharding
