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
MESHWORK_INLINE int warpgroup() { return thread() / warpgroupThreads; }
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

/// Which keys a query sees: [first, end).
struct Range {
  int first, end;
};
MESHWORK_INLINE Range keysOf(const WgmmaShape &shape, int query) {
  return {shape.window ? larger(0, query - shape.window + 1) : 0,
          shape.causal ? smaller(query + 1, shape.length) : shape.length};
}
/// Those that one of queries [first, end) sees.
MESHWORK_INLINE Range keysOf(const WgmmaShape &shape, int first, int end) {
  return {keysOf(shape, first).first, keysOf(shape, end - 1).end};
}
/// Queries that see one of keys [first, end).
MESHWORK_INLINE Range queriesOf(const WgmmaShape &shape, int first, int end) {
  return {shape.causal ? first : 0,
          shape.window ? smaller(shape.length, end - 1 + shape.window)
                       : shape.length};
}
/// Whether some pair of the rectangle does not count.
MESHWORK_INLINE bool isPartial(const WgmmaShape &shape, int query, int queries,
                               int key, int keys) {
  return keysOf(shape, query + queries - 1).first > key ||
         keysOf(shape, query).end < key + keys;
}
MESHWORK_INLINE bool isSeen(const WgmmaShape &shape, int query, int key) {
  Range keys = keysOf(shape, query);
  return key >= keys.first && key < keys.end;
}

/// Where the parts of shared memory begin.
template <typename Plan> struct Shared {
  U32 kept, staged, slots, full, empty, keptFull, keptEmpty;

  MESHWORK_INLINE explicit Shared(U32 begin) {
    kept = (begin + alignmentBytes - 1) & ~U32{alignmentBytes - 1};
    staged = kept + Plan::kept;
    slots = staged + Plan::staged;
    full = slots + Plan::ring;
    empty = full + Plan::Ring::slots * barrierBytes;
    keptFull = empty + Plan::Ring::slots * barrierBytes;
    keptEmpty = keptFull + barrierBytes;
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
