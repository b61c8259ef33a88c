#include "lib/Sharding/Moves.h"

#include "lib/Cost/Times.h"
#include "lib/Sharding/Blocks.h"

namespace meshwork::sharding {

using Kind = Step::Kind;

namespace {
plan::CollectiveKind collectiveOf(Kind kind) {
  switch (kind) {
  case Kind::allReduce:
    return plan::CollectiveKind::all_reduce;
  case Kind::allGather:
    return plan::CollectiveKind::all_gather;
  case Kind::reduceScatter:
    return plan::CollectiveKind::reduce_scatter;
  default:
    return plan::CollectiveKind::all_to_all;
  }
}

/// Parts, of one rank each, that a rank sends in a ring.
int64_t partsSent(Kind kind, int64_t numRanks) {
  if (kind == Kind::slice)
    return 0;
  return static_cast<int64_t>(
      cost::ringSteps(collectiveOf(kind), static_cast<uint64_t>(numRanks)));
}
} // namespace

Layout::Layout(const Problem &problem, State state)
    : numDims(static_cast<int>(problem.shape.size())) {
  int numAxes = static_cast<int>(problem.sizes.size());
  for (int axis = 0; axis < numAxes; ++axis) {
    int bin = state.bin(axis);
    // The order of what is replicated or partial is the mesh's.
    int place = bin < State::replicated ? state.position(axis) : count[bin];
    axes[bin][place] = static_cast<uint8_t>(axis);
    ++count[bin];
  }
  for (int dim = 0; dim < numDims; ++dim) {
    extents[dim][0] = problem.shape[dim];
    for (int i = 0; i < count[dim]; ++i)
      extents[dim][i + 1] =
          ceilDiv(extents[dim][i], problem.sizes[axes[dim][i]]);
  }
}

int64_t Layout::elementsWithout(int dim, int other) const {
  int64_t elements = 1;
  for (int d = 0; d < numDims; ++d)
    if (d != dim && d != other)
      elements *= local(d);
  return elements;
}

void Moves::emit(Kind kind, int dim, int toDim, int64_t elementsSent,
                 State after, int64_t elements) {
  candidates.push_back(
      {{kind, dim, toDim, elementsSent * problem.elementBytes, after},
       elements});
}

const std::vector<Candidate> &Moves::from(State start) {
  Layout current(problem, start);
  state = start;
  layout = &current;
  candidates.clear();
  slices();
  reduceScatters();
  allReduces();
  allGathers();
  for (int dim = 0; dim < current.numDims; ++dim)
    allToAlls(dim);
  layout = nullptr;
  return candidates;
}

/// Axes that move from a bin (replicated or partial) to the end of a dim.
struct Moves::Growth {
  Kind kind;
  int dim, bin;
  int64_t others;       // elements of a block of the other dims
  unsigned used = 0;    // axes taken, as bits
  int position = 0;     // of the next axis on the dim
  int64_t parent = 0;   // extent before the last axis taken; 0: none taken
  int64_t block = 0;    // extent now
  int64_t numRanks = 1; // of the axes taken
  State state{};
};

void Moves::grow(const Growth &growth) {
  for (int i = 0; i < layout->count[growth.bin]; ++i) {
    int axis = layout->axes[growth.bin][i];
    if (growth.used >> axis & 1)
      continue;
    Growth next = growth;
    int64_t size = problem.sizes[axis];
    next.parent = growth.block;
    next.block = ceilDiv(growth.block, size);
    if (growth.used &&
        !nestsFlat(growth.parent, growth.block, size, next.block))
      continue;
    next.used |= 1u << axis;
    next.numRanks *= size;
    next.state.place(axis, growth.dim, next.position++);
    int64_t elements = growth.others * next.block;
    emit(growth.kind, growth.dim, -1,
         partsSent(growth.kind, next.numRanks) * elements, next.state,
         elements);
    grow(next);
  }
}

void Moves::slices() {
  for (int dim = 0; dim < layout->numDims; ++dim) {
    Growth growth{Kind::slice, dim, State::replicated,
                  layout->elementsWithout(dim)};
    growth.position = layout->count[dim];
    growth.block = layout->local(dim);
    growth.state = state;
    grow(growth);
  }
}

void Moves::reduceScatters() {
  for (int dim = 0; dim < layout->numDims; ++dim) {
    Growth growth{Kind::reduceScatter, dim, State::partial,
                  layout->elementsWithout(dim)};
    growth.position = layout->count[dim];
    growth.block = layout->local(dim);
    growth.state = state;
    grow(growth);
  }
}

void Moves::allReduces() {
  int count = layout->count[State::partial];
  int64_t bytes = layout->elements() * problem.elementBytes;
  for (unsigned subset = 1; subset < 1u << count; ++subset) {
    int64_t numRanks = 1;
    State after = state;
    for (int i = 0; i < count; ++i) {
      if (!(subset >> i & 1))
        continue;
      int axis = layout->axes[State::partial][i];
      numRanks *= problem.sizes[axis];
      after.place(axis, State::replicated, 0);
    }
    emit(Kind::allReduce, -1, -1, 0, after, layout->elements());
    // In bytes, as a ring may cut anywhere.
    candidates.back().move.bytesSent = static_cast<int64_t>(cost::bytesSent(
        plan::CollectiveKind::all_reduce, static_cast<uint64_t>(bytes),
        static_cast<uint64_t>(numRanks)));
  }
}

void Moves::allGathers() {
  for (int dim = 0; dim < layout->numDims; ++dim) {
    const auto &extents = layout->extents[dim];
    int64_t others = layout->elementsWithout(dim);
    int64_t numRanks = 1;
    State after = state;
    for (int i = layout->count[dim]; i-- > 0;) {
      int axis = layout->axes[dim][i];
      if (numRanks > 1 &&
          !nestsFlat(extents[i], extents[i + 1],
                     problem.sizes[layout->axes[dim][i + 1]], extents[i + 2]))
        break;
      numRanks *= problem.sizes[axis];
      after.place(axis, State::replicated, 0);
      emit(Kind::allGather, dim, -1,
           partsSent(Kind::allGather, numRanks) * others * layout->local(dim),
           after, others * extents[i]);
    }
  }
}

void Moves::allToAlls(int dim) {
  const auto &extents = layout->extents[dim];
  int64_t numRanks = 1;
  for (int i = layout->count[dim]; i-- > 0;) {
    if (numRanks > 1 &&
        !nestsFlat(extents[i], extents[i + 1],
                   problem.sizes[layout->axes[dim][i + 1]], extents[i + 2]))
      break;
    numRanks *= problem.sizes[layout->axes[dim][i]];
    for (int toDim = 0; toDim < layout->numDims; ++toDim)
      if (toDim != dim)
        allToAllsTo(dim, layout->count[dim] - i, numRanks, toDim);
  }
}

/// The last `count` axes of `dim` become the last ones of `toDim`.
void Moves::allToAllsTo(int dim, int count, int64_t numRanks, int toDim) {
  int first = layout->count[dim] - count;
  int64_t parent = 0, block = layout->local(toDim);
  State after = state;
  for (int i = 0; i < count; ++i) {
    int axis = layout->axes[dim][first + i];
    int64_t inner = ceilDiv(block, problem.sizes[axis]);
    if (i > 0 && !nestsFlat(parent, block, problem.sizes[axis], inner))
      return;
    parent = block;
    block = inner;
    after.place(axis, toDim, layout->count[toDim] + i);
  }
  int64_t elements = layout->elementsWithout(dim, toDim) * block;
  emit(Kind::allToAll, dim, toDim,
       partsSent(Kind::allToAll, numRanks) * elements * layout->local(dim),
       after, elements * layout->extents[dim][first]);
}

} // namespace meshwork::sharding
