// Copies, zeroes and reduces boxes of strided tensors: what collectives on a
// device consist of. One launch does all moves of a collective; which, tables
// in memory say (Boxes.h).
#include "runtime/device/cuda/kernels/Boxes.h"
#include "runtime/device/cuda/kernels/Formats.h"

namespace meshwork::runtime::cuda {
namespace {
struct Sum {
  DEVICE static float of(float sum, float value) { return sum + value; }
  DEVICE static int of(int sum, int value) {
    return static_cast<int>(static_cast<U32>(sum) + static_cast<U32>(value));
  }
};
struct Max {
  template <typename Wide> DEVICE static Wide of(Wide most, Wide value) {
    return value > most || value != value ? value : most;
  }
};

/// A move, where its tables lie.
struct Task {
  const BoxMove &move;
  const BoxDim *dims;
  const U64 *sources, *targets;

  struct Place {
    long long source, target; // in units
  };
  DEVICE Place placeOf(long long unit) const {
    Place place{0, 0};
    for (int d = move.numDims - 1; d > 0; --d) {
      long long outer = unit / dims[d].size;
      long long at = unit - outer * dims[d].size;
      place.source += at * dims[d].sourceStride;
      place.target += at * dims[d].targetStride;
      unit = outer;
    }
    place.source += unit * dims[0].sourceStride;
    place.target += unit * dims[0].targetStride;
    return place;
  }
  template <typename Unit>
  DEVICE const Unit &source(int i, long long place) const {
    return reinterpret_cast<const Unit *>(sources[i])[place];
  }
  template <typename Unit>
  DEVICE void store(long long place, const Unit &unit) const {
    for (int i = 0; i < move.numTargets; ++i)
      reinterpret_cast<Unit *>(targets[i])[place] = unit;
  }
};

template <typename Unit> struct Zero {
  DEVICE static void run(const Task &task, Task::Place place) {
    task.store(place.target, Unit{});
  }
};

template <typename Unit> struct Copy {
  DEVICE static void run(const Task &task, Task::Place place) {
    task.store(place.target, task.source<Unit>(0, place.source));
  }
};

template <typename Format, typename Reduction> struct Reduce {
  DEVICE static void run(const Task &task, Task::Place place) {
    using Unit = typename Format::Unit;
    typename Format::Wide sums[Format::count];
    Unit first = task.source<Unit>(0, place.source);
#pragma unroll
    for (int k = 0; k < Format::count; ++k)
      sums[k] = Format::get(first, k);
    for (int i = 1; i < task.move.numSources; ++i) {
      Unit next = task.source<Unit>(i, place.source);
#pragma unroll
      for (int k = 0; k < Format::count; ++k)
        sums[k] = Reduction::of(sums[k], Format::get(next, k));
    }
    task.store(place.target, Format::join(sums));
  }
};

template <typename Action>
DEVICE void runAll(const Task &task, const BoxChunk &chunk) {
  for (long long unit = chunk.begin + thread(); unit < chunk.end;
       unit += boxThreads)
    Action::run(task, task.placeOf(unit));
}

DEVICE void run(const Task &task, const BoxChunk &chunk) {
  switch (task.move.code) {
  case BoxCode::zero1:
    return runAll<Zero<U8>>(task, chunk);
  case BoxCode::zero2:
    return runAll<Zero<U16>>(task, chunk);
  case BoxCode::zero4:
    return runAll<Zero<U32>>(task, chunk);
  case BoxCode::zero16:
    return runAll<Zero<U128>>(task, chunk);
  case BoxCode::copy1:
    return runAll<Copy<U8>>(task, chunk);
  case BoxCode::copy2:
    return runAll<Copy<U16>>(task, chunk);
  case BoxCode::copy4:
    return runAll<Copy<U32>>(task, chunk);
  case BoxCode::copy16:
    return runAll<Copy<U128>>(task, chunk);
  case BoxCode::sumF32:
    return runAll<Reduce<F32, Sum>>(task, chunk);
  case BoxCode::sumF32x4:
    return runAll<Reduce<F32x4, Sum>>(task, chunk);
  case BoxCode::sumBf16:
    return runAll<Reduce<Bf16, Sum>>(task, chunk);
  case BoxCode::sumBf16x8:
    return runAll<Reduce<Bf16x8, Sum>>(task, chunk);
  case BoxCode::maxF32:
    return runAll<Reduce<F32, Max>>(task, chunk);
  case BoxCode::maxF32x4:
    return runAll<Reduce<F32x4, Max>>(task, chunk);
  case BoxCode::maxBf16:
    return runAll<Reduce<Bf16, Max>>(task, chunk);
  case BoxCode::maxBf16x8:
    return runAll<Reduce<Bf16x8, Max>>(task, chunk);
  case BoxCode::sumI32:
    return runAll<Reduce<I32, Sum>>(task, chunk);
  case BoxCode::sumI32x4:
    return runAll<Reduce<I32x4, Sum>>(task, chunk);
  case BoxCode::maxI32:
    return runAll<Reduce<I32, Max>>(task, chunk);
  case BoxCode::maxI32x4:
    return runAll<Reduce<I32x4, Max>>(task, chunk);
  }
}
} // namespace

/// A block for each chunk, of boxThreads threads.
KERNEL moveBoxes(const BoxChunk *chunks, const BoxMove *moves,
                 const BoxDim *dims, const U64 *addresses) {
  const BoxChunk &chunk = chunks[blockOfGrid()];
  const BoxMove &move = moves[chunk.move];
  const U64 *sources = addresses + move.firstAddress;
  run({move, dims + move.firstDim, sources, sources + move.numSources}, chunk);
}

} // namespace meshwork::runtime::cuda
