// What the kernels of attention share: which work a block does, the ring
// through which operands arrive, which pairs count, softmax.
#pragma once

#include "runtime/device/cuda/kernels/Warpgroup.h"
#include "runtime/device/cuda/kernels/WgmmaAttention.h"

namespace meshwork::runtime::cuda {

inline constexpr float infinity = __builtin_inff(), log2e = 1.4426950408889634f,
                       ln2 = 0.6931471805599453f;

MESHWORK_INLINE int smaller(int a, int b) { return a < b ? a : b; }
MESHWORK_INLINE int larger(int a, int b) { return a > b ? a : b; }
MESHWORK_INLINE int warpgroup() { return fresh(thread()) / warpgroupThreads; }
MESHWORK_INLINE bool isProducer() { return warpgroup() == 2; }
MESHWORK_INLINE bool isFirstLane() { return thread() % 32 == 0; }
MESHWORK_INLINE bool isFirstOfWarpgroup() {
  return thread() % warpgroupThreads == 0;
}
/// The warps that compute.
inline constexpr U32 consumerWarps = 8;

template <int R> MESHWORK_INLINE void setAll(float (&values)[R], float value) {
#pragma unroll
  for (int i = 0; i < R; ++i)
    values[i] = value;
}

/// The block's work of a round, `pair` and `block` as in WgmmaWork.
struct Item {
  int pair, block;
  bool exists;
};
/// Items stand in a row, the longest of some pairs first, and blocks take them
/// back and forth: all come to about the same length.
MESHWORK_INLINE Item itemOf(const WgmmaWork &work, int round) {
  int grid = __nvvm_read_ptx_sreg_nctaid_x();
  int turn = round % 2 ? grid - 1 - blockOfGrid() : blockOfGrid();
  int number = round * grid + turn, perGroup = work.together * work.blocks;
  int firstPair = number / perGroup * work.together,
      pairs = smaller(work.together, work.pairs - firstPair);
  if (pairs <= 0)
    return {0, 0, false};
  int inGroup = number % perGroup;
  if (inGroup >= pairs * work.blocks)
    return {0, 0, false};
  return {firstPair + inGroup % pairs, inGroup / pairs, true};
}

struct Range {
  int first, end;
};

/// Which keys the queries of one sample see.
class Mask {
public:
  MESHWORK_INLINE Mask(const WgmmaShape &shape, int sample) : shape(shape) {
    if (shape.documents)
      begins = reinterpret_cast<const int *>(shape.documents) +
               static_cast<long long>(sample) * shape.length;
  }

  MESHWORK_INLINE Range keysOf(int query) const {
    int first = shape.window ? larger(0, query - shape.window + 1) : 0;
    return {larger(first, documentOf(query)),
            shape.causal ? smaller(query + 1, shape.length) : shape.length};
  }
  /// Those that one of a block's queries sees, from a multiple of `step` on.
  MESHWORK_INLINE Range keysOfBlock(int query, int step) const {
    int last = smaller(query + wgmmaRows, shape.length) - 1;
    return {keysOf(query).first / step * step, keysOf(last).end};
  }
  /// The end of the queries that see one of a block's keys, which are walked in
  /// steps from `first` on. Where a step's documents all begin behind these
  /// keys, it ends.
  MESHWORK_INLINE int endOfQueries(int key, int first, int step) const {
    int endKey = smaller(key + wgmmaRows, shape.length),
        end = shape.window ? smaller(shape.length, endKey - 1 + shape.window)
                           : shape.length;
    int low = first + step;
    while (begins && low < end) {
      int middle = low + (end - low) / (2 * step) * step;
      if (documentOf(middle) >= endKey)
        end = middle;
      else
        low = middle + step;
    }
    return end;
  }

private:
  MESHWORK_INLINE int documentOf(int query) const {
    if (!begins)
      return 0;
    int row = smaller(query, shape.length - 1);
    return smaller(row, larger(0, begins[row]));
  }

  const WgmmaShape &shape;
  const int *begins = nullptr;
};

/// Queries of a warpgroup against the keys that they see: of each thread's two
/// rows, and of all 64.
struct RowsMask {
  Range rows[2];
  int latestFirst, earliestEnd;

  MESHWORK_INLINE RowsMask(const Mask &mask, int query) {
    Lane lane;
#pragma unroll
    for (int r = 0; r < 2; ++r)
      rows[r] = mask.keysOf(query + lane.row + 8 * r);
    latestFirst = mask.keysOf(query + warpgroupRows - 1).first;
    earliestEnd = mask.keysOf(query).end;
  }

  /// Puts `value` where a query does not see one of the keys from `key` on.
  template <int R>
  MESHWORK_INLINE void hide(float (&scores)[R], int key, float value) const {
    if (latestFirst <= key && earliestEnd >= key + 2 * R)
      return;
    Lane lane;
#pragma unroll
    for (int i = 0; i < R; ++i) {
      int column = key + i / 4 * 8 + lane.column + i % 2;
      const Range &seen = rows[i / 2 % 2];
      if (column < seen.first || column >= seen.end)
        scores[i] = value;
    }
  }
};

/// The same where rows are keys and columns are queries, some from `query` on.
class ColumnsMask {
public:
  MESHWORK_INLINE ColumnsMask(const Mask &mask, int query, int key, int queries)
      : mask(mask), query(query), key(key) {
    Range first = mask.keysOf(query), last = mask.keysOf(query + queries - 1);
    hidesSome = last.first > key || first.end < key + warpgroupRows;
    hidesAll = first.first >= key + warpgroupRows || last.end <= key;
  }
  MESHWORK_INLINE bool all() const { return hidesAll; }

  MESHWORK_INLINE bool some() const { return hidesSome; }

  /// Puts zero where a query does not see a key.
  template <int R> MESHWORK_INLINE void hide(float (&values)[R]) const {
    if (!hidesSome)
      return;
    Lane lane;
#pragma unroll
    for (int j = 0; j < R / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        Range seen = mask.keysOf(query + 8 * j + lane.column + e);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          int row = key + lane.row + 8 * r;
          if (row < seen.first || row >= seen.end)
            values[4 * j + 2 * r + e] = 0;
        }
      }
  }

private:
  const Mask &mask;
  int query, key;
  bool hidesSome, hidesAll;
};

/// Where the parts of shared memory begin.
template <typename Plan> struct Shared {
  U32 kept, staged, slots, full, empty, keptFull, keptEmpty, number;

  MESHWORK_INLINE explicit Shared(U32 begin) {
    kept = (begin + alignmentBytes - 1) & ~U32{alignmentBytes - 1};
    staged = kept + Plan::kept;
    slots = staged + Plan::staged;
    full = slots + Plan::ring;
    empty = full + Plan::Ring::slots * barrierBytes;
    keptFull = empty + Plan::Ring::slots * barrierBytes;
    keptEmpty = keptFull + barrierBytes;
    number = keptEmpty + barrierBytes;
  }

  /// Goes with what is kept: written before the arrival, read behind the wait.
  MESHWORK_INLINE void tell(int value) const {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(number), "r"(value)
                 : "memory");
  }
  MESHWORK_INLINE int told() const {
    int value;
    asm volatile("ld.shared.b32 %0, [%1];"
                 : "=r"(value)
                 : "r"(number)
                 : "memory");
    return value;
  }

  /// Once, by the whole block.
  MESHWORK_INLINE void prepare() const {
    if (thread() == 0) {
      for (int i = 0; i < Plan::Ring::slots; ++i) {
        initBarrier(full + i * barrierBytes, 1);
        initBarrier(empty + i * barrierBytes, consumerWarps);
      }
      initBarrier(keptFull, 1);
      initBarrier(keptEmpty, consumerWarps);
      publishBarriers();
    }
    __syncthreads();
  }

  /// The tile of 64 rows of this warpgroup among those of one operand.
  static MESHWORK_INLINE U32 own(U32 tiles) {
    return tiles + warpgroup() * Plan::tile;
  }
};

/// One side of the ring: which slot is next.
template <typename Plan> class Ring {
public:
  MESHWORK_INLINE explicit Ring(const Shared<Plan> &shared) : shared(shared) {}

  struct Slot {
    U32 data, full, empty;
  };
  /// The producer's next slot, empty.
  MESHWORK_INLINE Slot fill() {
    Slot slot = next(1);
    waitFor(slot.empty, parity);
    return slot;
  }
  /// The consumers' next slot, full.
  MESHWORK_INLINE Slot use() {
    Slot slot = next(0);
    waitFor(slot.full, parity);
    return slot;
  }
  /// Each warp that used it says so.
  static MESHWORK_INLINE void release(const Slot &slot) {
    if (isFirstLane())
      arrive(slot.empty);
  }

private:
  MESHWORK_INLINE Slot next(U32 flip) {
    U32 at = number++;
    parity = phase ^ flip;
    if (number == Plan::Ring::slots) {
      number = 0;
      phase ^= 1;
    }
    return {shared.slots + at * Plan::slot, shared.full + at * barrierBytes,
            shared.empty + at * barrierBytes};
  }

  const Shared<Plan> &shared;
  U32 number = 0, phase = 0, parity = 0;
};

MESHWORK_INLINE float exponential2(float x) {
  return __nvvm_ex2_approx_ftz_f(x);
}
MESHWORK_INLINE float shuffled(float value, int step) {
  return __nvvm_shfl_sync_bfly_f32(~0u, value, step, 31);
}

/// What a warpgroup has computed, on its way to memory: 64 rows of a head.
template <int D, int R>
MESHWORK_INLINE void storeRows(U32 tile, const float (&sums)[R],
                               const float (&factors)[2], const TensorMap &to,
                               int row, int head, int sample) {
  static_assert(R == D / 2);
  writeTile(tile, sums, factors);
  publishShared();
  meetThreads(1 + warpgroup(), warpgroupThreads);
  if (!isFirstOfWarpgroup())
    return;
#pragma unroll
  for (int column = 0; column < D; column += boxColumns)
    storeBox(to, {column, row, head, sample},
             tile + column / boxColumns * columnBytes(warpgroupRows));
  commitStores();
}
/// Before its tiles are written again, or given up.
MESHWORK_INLINE void finishRows() {
  if (isFirstOfWarpgroup())
    finishStores();
  meetThreads(1 + warpgroup(), warpgroupThreads);
}

} // namespace meshwork::runtime::cuda
