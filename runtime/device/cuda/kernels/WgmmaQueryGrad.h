// Attention's gradient, dq: a block keeps queries and their dout, and walks the
// keys that they see. Scores are computed a second time: seven products, where
// five would do with atomic additions to dq. That is the price of the same bits
// in every run.
#pragma once

#include "runtime/device/cuda/kernels/WgmmaKeyGrad.h"

namespace meshwork::runtime::cuda {

template <int D> class QueryGrad {
  using Plan = QueryGradPlan<D>;
  static constexpr int keys = Plan::Ring::rows;

  const QueryGradTask &task;
  const Shared<Plan> &shared;
  Ring<Plan> ring;

public:
  MESHWORK_INLINE QueryGrad(const QueryGradTask &task,
                            const Shared<Plan> &shared)
      : task(task), shared(shared), ring(shared) {}

  /// Fetches what is kept of an item, then all tiles that are walked.
  MESHWORK_INLINE void produce(const Item &item) {
    QueryPlace at = placeOf(item, task.shape, task.work, keys);
    arriveExpecting(shared.keptFull, Plan::kept);
    shared.template fetchKept<D>(0, task.q, at.query, at.head, at.sample);
    shared.template fetchKept<D>(1, task.dout, at.query, at.head, at.sample);
    for (int key = at.seen.first; key < at.seen.end; key += keys) {
      ring.template fetch<D>(task.k, key, at.kvHead, at.sample);
      ring.template fetch<D>(task.v, key, at.kvHead, at.sample);
    }
  }

  MESHWORK_INLINE void compute(const Item &item) {
    QueryPlace at = placeOf(item, task.shape, task.work, keys);
    at.seen = sameInWarp(at.seen);
    const U32 q = shared.own(shared.kept), dout = q + 2 * Plan::tile;
    float scores[keys / 2], dprobs[keys / 2], dq[D / 2], lse[2], delta[2];
    U32 left[keys / 16][4];
    const RowsMask mask = RowsMask::ofQueries(
        Mask(task.shape, at.sample), at.query + warpgroup() * warpgroupRows);
    loadRowValues(at, lse, delta);
    setAll(dq, 0);
    typename Ring<Plan>::Slot before{};
    for (int key = at.seen.first; key < at.seen.end; key += keys) {
      auto k = ring.use();
      beginProducts();
      multiply<D, warpgroupRows, keys>(scores, q, k.data);
      commitProducts();
      auto v = ring.use();
      beginProducts();
      multiply<D, warpgroupRows, keys>(dprobs, dout, v.data);
      commitProducts();
      waitForProducts<1>(); // scores, and the sums of the tile before
      hold(scores);
      hold(dq);
      hold(left);
      if (before.empty)
        ring.release(before);
      before = k;
#pragma unroll
      for (int i = 0; i < keys / 2; ++i)
        scores[i] = exponential2(__builtin_fmaf(
            scores[i], task.shape.scale * log2e, -lse[i / 2 % 2]));
      mask.hide(scores, key, 0);
      waitForProducts<0>();
      hold(dprobs);
      ring.release(v);
#pragma unroll
      for (int i = 0; i < keys / 2; ++i)
        dprobs[i] = scores[i] * (dprobs[i] - delta[i / 2 % 2]);
      if (mask.hidesSome(key, keys))
        dropWhereZero(dprobs, scores);
      toOperand(left, dprobs);
      hold(left);
      beginProducts();
      addProduct<keys>(dq, left, k.data);
      commitProducts();
    }
    waitForProducts<0>();
    hold(dq);
    hold(left);
    if (before.empty)
      ring.release(before);
    shared.releaseKept();
    float scales[2] = {task.shape.scale, task.shape.scale};
    finishRows();
    storeRows<D>(shared.own(shared.staged), dq, scales, task.dq, task.wideDq,
                 at.query + warpgroup() * warpgroupRows, at.head, at.sample);
  }

private:
  MESHWORK_INLINE void loadRowValues(const QueryPlace &at, float (&lse)[2],
                                     float (&delta)[2]) const {
    struct alignas(8) Pair {
      float lse, delta;
    };
    Lane lane;
    const Pair *rows = reinterpret_cast<const Pair *>(task.rowValues) +
                       firstRowValue(task.shape, at.sample, at.head) +
                       at.query + warpgroup() * warpgroupRows;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      Pair pair = rows[lane.row + 8 * r];
      lse[r] = pair.lse;
      delta[r] = pair.delta;
    }
  }
};

} // namespace meshwork::runtime::cuda
