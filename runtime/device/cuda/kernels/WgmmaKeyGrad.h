// Attention's gradient, dk and dv: a block keeps keys and their values, and
// walks the queries that see them, of all query heads of the key head, in
// order. Nothing else writes these rows, so nothing is added atomically. Scores
// are transposed, rows are keys: p^T and ds^T then are left operands.
#pragma once

#include "runtime/device/cuda/kernels/WgmmaRows.h"

namespace meshwork::runtime::cuda {

/// lse * log2(e) and delta of two queries next to each other.
struct alignas(16) RowValues {
  float lse[2], delta[2];
};
MESHWORK_INLINE RowValues rowValuesAt(U32 address) {
  RowValues values;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values.lse[0]), "=f"(values.delta[0]),
                 "=f"(values.lse[1]), "=f"(values.delta[1])
               : "r"(address)
               : "memory");
  return values;
}
/// Those of a slot's queries, two of each eight a thread's. They are read while
/// tensor cores work, if there are registers to keep them in.
template <int queries, bool areKept> class SlotValues {
public:
  MESHWORK_INLINE explicit SlotValues(U32 begin)
      : begin(begin + Lane().column * rowValueBytes) {
    if (!areKept)
      return;
#pragma unroll
    for (int j = 0; j < queries / 8; ++j)
      kept[j] = read(j);
  }
  /// `visit(number, values, e)` for each of a thread's numbers: of query e of
  /// two.
  template <typename Visit> MESHWORK_INLINE void each(Visit visit) const {
#pragma unroll
    for (int j = 0; j < queries / 8; ++j) {
      RowValues pair = areKept ? kept[j] : read(j);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        visit(4 * j + i, pair, i % 2);
    }
  }

private:
  MESHWORK_INLINE RowValues read(int j) const {
    return rowValuesAt(begin + 8 * j * rowValueBytes);
  }
  U32 begin;
  RowValues kept[queries / 8];
};

/// A probability of zero times what is no number is none, but a hidden pair
/// counts nothing.
template <int R>
MESHWORK_INLINE void dropWhereZero(float (&dprobs)[R],
                                   const float (&probs)[R]) {
#pragma unroll
  for (int i = 0; i < R; ++i)
    dprobs[i] = probs[i] == 0 ? 0.0f : dprobs[i];
}
/// Queries before the sample's and head's in the row values.
MESHWORK_INLINE long long firstRowValue(const WgmmaShape &shape, int sample,
                                        int head) {
  int padded = (shape.rows + wgmmaRows - 1) / wgmmaRows * wgmmaRows;
  return (static_cast<long long>(sample) * shape.heads + head) * padded;
}

template <int D> class KeyGrad {
  using Plan = KeyGradPlan<D>;
  static constexpr int queries = Plan::Ring::rows;
  static constexpr int operandBytes = queries * D * 2;
  /// The next slot's scores begin before this one's sums have ended: registers
  /// do for both.
  static constexpr bool overlaps = D == 64;
  using Values = SlotValues<queries, overlaps>;

  const KeyGradTask &task;
  const Shared<Plan> &shared;
  Ring<Plan> ring;

  struct Place {
    int sample, kvHead, key, firstHead, endHead;
    Range queries; // from a multiple of a slot's on; the producer finds them
  };
  MESHWORK_INLINE Place placeOf(const Item &item) const {
    const WgmmaShape &shape = task.shape;
    int group = shape.heads / shape.kvHeads;
    Place place;
    place.sample = item.pair / shape.kvHeads;
    place.kvHead = item.pair % shape.kvHeads;
    place.key = item.block * wgmmaRows;
    place.firstHead = place.kvHead * group;
    place.endHead = place.firstHead + group;
    return place;
  }
  /// `visit(head, query)` for each slot's queries, in order.
  template <typename Visit>
  static MESHWORK_INLINE void walk(const Place &at, Visit visit) {
    for (int head = at.firstHead; head < at.endHead; ++head)
      for (int query = at.queries.first; query < at.queries.end;
           query += queries)
        visit(head, query);
  }

public:
  MESHWORK_INLINE KeyGrad(const KeyGradTask &task, const Shared<Plan> &shared)
      : task(task), shared(shared), ring(shared) {}

  /// Fetches what is kept of an item, then all slots that are walked.
  MESHWORK_INLINE void produce(const Item &item) {
    Place at = placeOf(item);
    at.queries = queriesOf(at);
    shared.tellRange(at.queries);
    arriveExpecting(shared.keptFull, Plan::kept);
    shared.template fetchKept<D>(0, task.k, at.key, at.kvHead, at.sample);
    shared.template fetchKept<D>(1, task.v, at.key, at.kvHead, at.sample);
    walk(at,
         [&](int head, int query) MESHWORK_LAMBDA { fetch(head, query, at); });
  }

  MESHWORK_INLINE void compute(const Item &item) {
    Place at = placeOf(item);
    at.queries = shared.toldRange();
    const RowsMask mask = RowsMask::ofKeys(
        Mask(task.shape, at.sample), at.key + warpgroup() * warpgroupRows);
    float scores[queries / 2], dprobs[queries / 2], dk[D / 2], dv[D / 2];
    U32 left[queries / 16][4], dleft[queries / 16][4];
    setAll(dk, 0);
    setAll(dv, 0);
    typename Ring<Plan>::Slot before{};
    const U32 kTile = shared.own(shared.kept), vTile = kTile + 2 * Plan::tile;
    walk(at, [&](int, int query) MESHWORK_LAMBDA {
      auto slot = ring.use();
      if (mask.hidesAll(query, queries)) {
        // The producer may need the slot before to fetch the next one that is
        // not hidden, so it is not kept until then.
        if (overlaps)
          endSums(dk, dv, left, dleft, before);
        ring.release(slot);
        return;
      }
      U32 q = slot.data, dout = q + operandBytes;
      beginProducts();
      multiply<D, warpgroupRows, queries>(scores, kTile, q);
      commitProducts();
      multiply<D, warpgroupRows, queries>(dprobs, vTile, dout);
      commitProducts();
      const Values values(dout + operandBytes);
      waitForProducts<1>(); // scores, and sums of the slot before
      hold(scores);
      if (overlaps) {
        finishSums(dk, dv, left, dleft, before);
        before = slot;
      }
      toProbabilities(scores, values);
      mask.hide(scores, query, 0);
      if (!overlaps)
        beginValueSums(dv, left, scores, dout);
      waitForProducts<overlaps ? 0 : 1>();
      hold(dprobs);
      toScoreGrads(dprobs, scores, values);
      if (mask.hidesSome(query, queries))
        dropWhereZero(dprobs, scores);
      toOperand(dleft, dprobs);
      hold(dleft);
      if (overlaps)
        beginValueSums(dv, left, scores, dout);
      beginProducts();
      addProduct<queries>(dk, dleft, q);
      commitProducts();
      if (overlaps)
        return;
      waitForProducts<0>();
      finishSums(dk, dv, left, dleft, slot);
    });
    if (overlaps)
      endSums(dk, dv, left, dleft, before);
    shared.releaseKept();
    store(at, dk, dv);
  }

private:
  /// Those that see one of the block's keys.
  MESHWORK_INLINE Range queriesOf(const Place &at) const {
    int end = smaller(at.key + wgmmaRows, endOf(task.shape.keys));
    if (at.key >= end)
      return {0, 0}; // All of them are padding.
    int ends[] = {at.key, end - 1};
    Range found[2];
    Mask(task.shape, at.sample).queriesOf(ends, found);
    return {found[0].first / queries * queries, found[1].end};
  }

  MESHWORK_INLINE void fetch(int head, int query, const Place &at) {
    constexpr U32 valueBytes = queries * rowValueBytes;
    auto slot = ring.fill();
    arriveExpecting(slot.full, 2 * operandBytes + valueBytes);
    loadTile<queries, D>(slot.data, task.q, query, head, at.sample, slot.full);
    loadTile<queries, D>(slot.data + operandBytes, task.dout, query, head,
                         at.sample, slot.full);
    U64 values =
        task.rowValues +
        (firstRowValue(task.shape, at.sample, head) + query) * rowValueBytes;
    loadBytes(slot.data + 2 * operandBytes, values, valueBytes, slot.full);
  }

  static MESHWORK_INLINE void beginValueSums(float (&dv)[D / 2],
                                             U32 (&left)[queries / 16][4],
                                             const float (&probs)[queries / 2],
                                             U32 dout) {
    toOperand(left, probs);
    hold(left);
    beginProducts();
    addProduct<queries>(dv, left, dout);
    commitProducts();
  }

  /// Of a slot that has been waited for, if there is one.
  static MESHWORK_INLINE void
  finishSums(float (&dk)[D / 2], float (&dv)[D / 2],
             U32 (&left)[queries / 16][4], U32 (&dleft)[queries / 16][4],
             const typename Ring<Plan>::Slot &slot) {
    hold(dk);
    hold(dv);
    hold(left);
    hold(dleft);
    if (slot.empty)
      Ring<Plan>::release(slot);
  }

  /// Waits for the sums of a slot, if there is one, and releases it.
  static MESHWORK_INLINE void endSums(float (&dk)[D / 2], float (&dv)[D / 2],
                                      U32 (&left)[queries / 16][4],
                                      U32 (&dleft)[queries / 16][4],
                                      typename Ring<Plan>::Slot &slot) {
    waitForProducts<0>();
    finishSums(dk, dv, left, dleft, slot);
    slot = {};
  }

  MESHWORK_INLINE void toProbabilities(float (&scores)[queries / 2],
                                       const Values &values) const {
    const float factor = task.shape.scale * log2e;
    values.each([&](int n, const RowValues &pair, int e) MESHWORK_LAMBDA {
      scores[n] = exponential2(__builtin_fmaf(scores[n], factor, -pair.lse[e]));
    });
  }
  /// `scale` is applied at the end.
  static MESHWORK_INLINE void toScoreGrads(float (&dprobs)[queries / 2],
                                           const float (&probs)[queries / 2],
                                           const Values &values) {
    values.each([&](int n, const RowValues &pair, int e) MESHWORK_LAMBDA {
      dprobs[n] = probs[n] * (dprobs[n] - pair.delta[e]);
    });
  }

  MESHWORK_INLINE void store(const Place &at, const float (&dk)[D / 2],
                             const float (&dv)[D / 2]) {
    int key = at.key + warpgroup() * warpgroupRows;
    float scales[2] = {task.shape.scale, task.shape.scale}, ones[2] = {1, 1};
    U32 staged = shared.own(shared.staged);
    finishRows();
    storeRows<D>(staged, dk, scales, task.dk, task.wideDk, key, at.kvHead,
                 at.sample);
    storeRows<D>(staged + 2 * Plan::tile, dv, ones, task.dv, task.wideDv, key,
                 at.kvHead, at.sample);
  }
};

} // namespace meshwork::runtime::cuda
