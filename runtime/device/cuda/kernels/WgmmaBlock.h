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

MESHWORK_INLINE int endOf(const WgmmaRuns &runs) {
  return runs.count[1] ? runs.offset[1] + runs.count[1]
                       : runs.offset[0] + runs.count[0];
}
/// Which token the row is, or -1.
MESHWORK_INLINE int tokenOf(const WgmmaRuns &runs, int row) {
  bool isSecond = runs.count[1] && row >= runs.offset[1];
  int at = row - (isSecond ? runs.offset[1] : runs.offset[0]);
  return at < (isSecond ? runs.count[1] : runs.count[0])
             ? at + (isSecond ? runs.begin[1] : runs.begin[0])
             : -1;
}
/// The first row that is this token or one behind it, or the end.
MESHWORK_INLINE int rowFrom(const WgmmaRuns &runs, int token) {
  bool isSecond = runs.count[1] && token >= runs.begin[0] + runs.count[0];
  int at = larger(0, token - (isSecond ? runs.begin[1] : runs.begin[0]));
  return isSecond ? runs.offset[1] + smaller(at, runs.count[1])
                  : runs.offset[0] + smaller(at, runs.count[0]);
}

struct Range {
  int first, end;
};

/// Which columns of keys the rows of one sample's queries see. Both ends rise
/// from row to row.
class Mask {
public:
  MESHWORK_INLINE Mask(const WgmmaShape &shape, int sample) : shape(shape) {
    if (shape.documents)
      begins = reinterpret_cast<const int *>(shape.documents) +
               static_cast<long long>(sample) * shape.rows;
  }

  MESHWORK_INLINE Range keysOf(int row) const {
    int query = tokenOf(shape.queries, row);
    if (query < 0) // Padding is behind all others.
      return {shape.columns, shape.columns};
    int first = shape.window ? larger(0, query - shape.window + 1) : 0;
    return {rowFrom(shape.keys, larger(first, documentOf(row, query))),
            rowFrom(shape.keys, shape.causal ? query + 1 : shape.sequence)};
  }
  /// Those that one of a block's queries sees, from a multiple of `step` on.
  MESHWORK_INLINE Range keysOfBlock(int row, int step) const {
    int end = smaller(row + wgmmaRows, endOf(shape.queries));
    if (row >= end)
      return {0, 0};
    return {keysOf(row).first / step * step, keysOf(end - 1).end};
  }
  /// Rows of queries that see each of these columns: those of documents end
  /// where the first begins behind it, which is looked for of all columns at
  /// once.
  template <int N>
  MESHWORK_INLINE void queriesOf(const int (&columns)[N],
                                 Range (&ranges)[N]) const {
    int keys[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      keys[n] = tokenOf(shape.keys, columns[n]);
      int end = endOf(shape.queries);
      ranges[n] = {shape.causal ? rowFrom(shape.queries, keys[n]) : 0,
                   shape.window ? rowFrom(shape.queries, keys[n] + shape.window)
                                : end};
      if (keys[n] < 0) // Padding is behind all others.
        ranges[n] = {end, end};
    }
    if (begins)
      endWithDocuments(keys, ranges);
  }

private:
  MESHWORK_INLINE int documentOf(int row, int query) const {
    return begins ? smaller(query, larger(0, begins[row])) : 0;
  }
  template <int N>
  MESHWORK_INLINE void endWithDocuments(const int (&keys)[N],
                                        Range (&ranges)[N]) const {
    int low[N];
#pragma unroll
    for (int n = 0; n < N; ++n)
      low[n] = ranges[n].first;
    for (int left = shape.rows; left > 0; left /= 2)
#pragma unroll
      for (int n = 0; n < N; ++n) {
        int middle = (low[n] + ranges[n].end) / 2;
        if (low[n] >= ranges[n].end)
          continue;
        if (documentOf(middle, tokenOf(shape.queries, middle)) > keys[n])
          ranges[n].end = middle;
        else
          low[n] = middle + 1;
      }
  }

  const WgmmaShape &shape;
  const int *begins = nullptr;
};

/// Which columns count with rows of a warpgroup: with a thread's two, and with
/// the first and the last of all 64. Both ends rise from row to row.
struct RowsMask {
  Range first, last, rows[2];

  /// Of queries, whose columns are keys.
  static MESHWORK_INLINE RowsMask ofQueries(const Mask &mask, int query) {
    Lane lane;
    return {mask.keysOf(query),
            mask.keysOf(query + warpgroupRows - 1),
            {mask.keysOf(query + lane.row), mask.keysOf(query + lane.row + 8)}};
  }
  /// Of keys, whose columns are queries.
  static MESHWORK_INLINE RowsMask ofKeys(const Mask &mask, int key) {
    Lane lane;
    int keys[] = {key, key + warpgroupRows - 1, key + lane.row,
                  key + lane.row + 8};
    Range found[4];
    mask.queriesOf(keys, found);
    return {found[0], found[1], {found[2], found[3]}};
  }

  /// No pair of the columns from `column` on counts.
  MESHWORK_INLINE bool hidesAll(int column, int columns) const {
    return first.first >= column + columns || last.end <= column;
  }
  MESHWORK_INLINE bool hidesSome(int column, int columns) const {
    return last.first > column || first.end < column + columns;
  }
  /// Puts `value` where a pair does not count.
  template <int R>
  MESHWORK_INLINE void hide(float (&scores)[R], int column, float value) const {
    if (!hidesSome(column, 2 * R))
      return;
    Lane lane;
#pragma unroll
    for (int i = 0; i < R; ++i) {
      int at = column + i / 4 * 8 + lane.column + i % 2;
      const Range &counts = rows[i / 2 % 2];
      if (at < counts.first || at >= counts.end)
        scores[i] = value;
    }
  }
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
  MESHWORK_INLINE void tell(const Range &range) const {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(number),
                 "r"(range.first), "r"(range.end)
                 : "memory");
  }
  MESHWORK_INLINE Range told() const {
    Range range;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(range.first), "=r"(range.end)
                 : "r"(number)
                 : "memory");
    return range;
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

template <int R>
MESHWORK_INLINE void
storeWideRows(const float (&sums)[R], const float (&factors)[2],
              const WgmmaWide &to, int row, int head, int sample) {
  struct alignas(8) Pair {
    float values[2];
  };
  Lane lane;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    int at = row + lane.row + 8 * r;
    if (at >= to.rows)
      continue;
    float *place = reinterpret_cast<float *>(to.address) +
                   sample * to.strides[0] + head * to.strides[1] +
                   at * to.strides[2] + lane.column;
#pragma unroll
    for (int j = 0; j < R / 4; ++j)
      if (8 * j + lane.column < to.headDim)
        *reinterpret_cast<Pair *>(place + 8 * j) = {
            {sums[4 * j + 2 * r] * factors[r],
             sums[4 * j + 2 * r + 1] * factors[r]}};
  }
}

/// What a warpgroup has computed, on its way to memory: 64 rows of a head.
template <int D, int R>
MESHWORK_INLINE void storeRows(U32 tile, const float (&sums)[R],
                               const float (&factors)[2], const TensorMap &to,
                               const WgmmaWide &wide, int row, int head,
                               int sample) {
  static_assert(R == D / 2);
  if (wide.address)
    return storeWideRows(sums, factors, wide, row, head, sample);
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
