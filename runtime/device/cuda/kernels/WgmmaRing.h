// How a block of attention's kernels works: which work it does, who does what,
// and the ring through which operands arrive.
#pragma once

#include "runtime/device/cuda/kernels/WgmmaMask.h"

namespace meshwork::runtime::cuda {

MESHWORK_INLINE int warpgroup() { return fresh(thread()) / warpgroupThreads; }
MESHWORK_INLINE bool isProducer() { return warpgroup() == 2; }
MESHWORK_INLINE bool isFirstLane() { return thread() % 32 == 0; }
MESHWORK_INLINE bool isFirstOfWarpgroup() {
  return thread() % warpgroupThreads == 0;
}
/// The warps that compute.
inline constexpr U32 consumerWarps = 8;

/// A piece of work, `pair` and `block` as in WgmmaWork.
struct Item {
  int pair, block;
  bool exists;
};
/// Items stand in a row, the longest of some pairs first.
MESHWORK_INLINE Item itemOf(const WgmmaWork &work, int number) {
  int perGroup = work.together * work.blocks;
  int firstPair = number / perGroup * work.together,
      inGroup = number % perGroup,
      pairs = smaller(work.together, work.pairs - firstPair);
  if (pairs <= 0 || inGroup >= pairs * work.blocks)
    return {0, 0, false};
  return {firstPair + inGroup % pairs, inGroup / pairs, true};
}
/// The next item for this thread block: whoever is done first takes it, so that
/// all end together. Each block asks once more than there is for it; the last
/// one to ask leaves zero for the next launch.
MESHWORK_INLINE int takeNumber(const WgmmaWork &work) {
  U32 number;
  asm volatile("atom.global.add.u32 %0, [%1], 1;"
               : "=r"(number)
               : "l"(work.counter)
               : "memory");
  U32 last = static_cast<U32>(work.blocks) * static_cast<U32>(work.pairs) +
             __nvvm_read_ptx_sreg_nctaid_x() - 1;
  if (number == last)
    *reinterpret_cast<U32 *>(work.counter) = 0;
  return static_cast<int>(number);
}

/// What a block that keeps queries does: `seen` from a multiple of a tile's
/// keys on.
struct QueryPlace {
  int sample, head, kvHead, query;
  Range seen;
};
MESHWORK_INLINE QueryPlace placeOf(const Item &item, const WgmmaShape &shape,
                                   const WgmmaWork &work, int keys) {
  QueryPlace place;
  place.sample = item.pair / shape.heads;
  place.head = item.pair % shape.heads;
  place.kvHead = place.head / (shape.heads / shape.kvHeads);
  // With a causal mask the last queries see the most keys.
  place.query =
      (shape.causal ? work.blocks - 1 - item.block : item.block) * wgmmaRows;
  place.seen = Mask(shape, place.sample).keysOfBlock(place.query, keys);
  return place;
}

/// Where the parts of shared memory begin.
template <typename Plan> struct Shared {
  U32 kept, staged, slots, full, empty, keptFull, keptEmpty, notes;

  MESHWORK_INLINE explicit Shared(U32 begin) {
    kept = (begin + alignmentBytes - 1) & ~U32{alignmentBytes - 1};
    staged = kept + Plan::kept;
    slots = staged + Plan::staged;
    full = slots + Plan::ring;
    empty = full + Plan::Ring::slots * barrierBytes;
    keptFull = empty + Plan::Ring::slots * barrierBytes;
    keptEmpty = keptFull + barrierBytes;
    notes = keptEmpty + barrierBytes;
  }

  /// Go with what is kept: written before the arrival, read behind the wait.
  MESHWORK_INLINE void tellNumber(int value) const {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(notes), "r"(value) : "memory");
  }
  MESHWORK_INLINE int toldNumber() const {
    int value;
    asm volatile("ld.shared.b32 %0, [%1];"
                 : "=r"(value)
                 : "r"(notes)
                 : "memory");
    return sameInWarp(value);
  }
  MESHWORK_INLINE void tellRange(const Range &range) const {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(notes + 8),
                 "r"(range.first), "r"(range.end)
                 : "memory");
  }
  MESHWORK_INLINE Range toldRange() const {
    Range range;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(range.first), "=r"(range.end)
                 : "r"(notes + 8)
                 : "memory");
    return sameInWarp(range);
  }

  /// Each warp that computes says that it needs what is kept, and the notes,
  /// no more: all of its lanes have read them.
  MESHWORK_INLINE void releaseKept() const {
    meetLanes();
    if (isFirstLane())
      arrive(keptEmpty);
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

  /// Fetches the block's rows of an operand, the `number`th of those it keeps.
  template <int D>
  MESHWORK_INLINE void fetchKept(int number, const TensorMap &map, int row,
                                 int head, int sample) const {
#pragma unroll
    for (int part = 0; part < 2; ++part)
      loadTile<warpgroupRows, D>(kept + (2 * number + part) * Plan::tile, map,
                                 row + part * warpgroupRows, head, sample,
                                 keptFull);
  }
  /// The tile of 64 rows of this warpgroup among those of one operand.
  static MESHWORK_INLINE U32 own(U32 tiles) {
    return tiles + sameInWarp(warpgroup()) * Plan::tile;
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
    waitOrTrap(slot.empty, parity);
    return slot;
  }
  /// Fetches one tile into it.
  template <int D>
  MESHWORK_INLINE void fetch(const TensorMap &map, int row, int head,
                             int sample) {
    Slot slot = fill();
    arriveExpecting(slot.full, Plan::slot);
    loadTile<Plan::Ring::rows, D>(slot.data, map, row, head, sample, slot.full);
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

} // namespace meshwork::runtime::cuda
