// States that a permute connects: block k of a dim is the same elements in
// both, whatever axes make up k.
#include "lib/Sharding/Blocks.h"
#include "lib/Sharding/Moves.h"

namespace meshwork::sharding {
namespace {

/// The splits of a dim, those that act as one merged: 2 x 4 flat is 8.
struct Radices {
  std::array<int64_t, maxSearchAxes> values;
  int count = 0;
};

Radices radicesOf(const Problem &problem, const Layout &layout, int dim) {
  Radices radices;
  const auto &extents = layout.extents[dim];
  for (int i = 0; i < layout.count[dim]; ++i) {
    int64_t size = problem.sizes[layout.axes[dim][i]];
    if (i > 0 && nestsFlat(extents[i - 1], extents[i], size, extents[i + 1]))
      radices.values[radices.count - 1] *= size;
    else
      radices.values[radices.count++] = size;
  }
  return radices;
}

bool operator==(const Radices &a, const Radices &b) {
  return a.count == b.count &&
         std::equal(a.values.begin(), a.values.begin() + a.count,
                    b.values.begin());
}

int64_t productOf(const Problem &problem, const Layout &layout, int dim) {
  int64_t product = 1;
  for (int i = 0; i < layout.count[dim]; ++i)
    product *= problem.sizes[layout.axes[dim][i]];
  return product;
}

} // namespace

std::string Moves::permuteClass(State start) const {
  Layout current(problem, start);
  std::string key;
  auto add = [&](int64_t value) {
    key.append(reinterpret_cast<const char *>(&value), sizeof(value));
  };
  unsigned partial = 0;
  for (int i = 0; i < current.count[State::partial]; ++i)
    partial |= 1u << current.axes[State::partial][i];
  add(partial);
  for (int dim = 0; dim < current.numDims; ++dim) {
    if (current.count[dim] == 0)
      continue;
    Radices radices = radicesOf(problem, current, dim);
    add(dim);
    add(radices.count);
    for (int i = 0; i < radices.count; ++i)
      add(radices.values[i]);
  }
  return key;
}

std::vector<State> Moves::permuteTargets(State start) const {
  Layout current(problem, start);
  unsigned free = 0;
  State target = start;
  int numAxes = static_cast<int>(problem.sizes.size());
  for (int axis = 0; axis < numAxes; ++axis) {
    if (start.bin(axis) == State::partial)
      continue;
    free |= 1u << axis;
    target.place(axis, State::replicated, 0);
  }
  Layout empty(problem, target);
  std::vector<State> found;
  matchDim(current, 0, empty, target, free, found);
  return found;
}

/// Fills `dim` and those after it with `free` axes, so that the blocks are
/// those of `layout`.
void Moves::matchDim(const Layout &layout, int dim, Layout &partOf, State state,
                     unsigned free, std::vector<State> &found) const {
  while (dim < layout.numDims && layout.count[dim] == 0)
    ++dim;
  if (dim == layout.numDims) {
    found.push_back(state);
    return;
  }
  int64_t wanted = productOf(problem, layout, dim);
  int64_t have = productOf(problem, partOf, dim);
  if (have == wanted) {
    if (!(radicesOf(problem, partOf, dim) == radicesOf(problem, layout, dim)))
      return;
    matchDim(layout, dim + 1, partOf, state, free, found);
    return;
  }
  int numAxes = static_cast<int>(problem.sizes.size());
  for (int axis = 0; axis < numAxes; ++axis) {
    if (!(free >> axis & 1) || wanted / have % problem.sizes[axis] != 0)
      continue;
    int position = partOf.count[dim]++;
    partOf.axes[dim][position] = static_cast<uint8_t>(axis);
    partOf.extents[dim][position + 1] =
        ceilDiv(partOf.extents[dim][position], problem.sizes[axis]);
    State next = state;
    next.place(axis, dim, position);
    matchDim(layout, dim, partOf, next, free & ~(1u << axis), found);
    --partOf.count[dim];
  }
}

} // namespace meshwork::sharding
