// Attention, forward. In each turn tensor cores get the scores of a tile of
// keys, then the sums of the tile before; the tile's softmax runs under the
// latter. The two warpgroups fill each other's gaps.
#pragma once

#include "runtime/device/cuda/kernels/WgmmaSoftmax.h"

namespace meshwork::runtime::cuda {

template <int D> class Forward {
  using Plan = ForwardPlan<D>;
  static constexpr int keys = Plan::Ring::rows;

  const ForwardTask &task;
  const Shared<Plan> &shared;
  Ring<Plan> ring;

public:
  MESHWORK_INLINE Forward(const ForwardTask &task, const Shared<Plan> &shared)
      : task(task), shared(shared), ring(shared) {}

  /// Fetches what is kept of an item, then all tiles that are walked.
  MESHWORK_INLINE void produce(const Item &item) {
    QueryPlace at = placeOf(item, task.shape, task.work, keys);
    arriveExpecting(shared.keptFull, Plan::kept);
    shared.template fetchKept<D>(0, task.q, at.query, at.head, at.sample);
    int key = at.seen.first;
    if (key >= at.seen.end)
      return; // These queries see none of the keys.
    ring.template fetch<D>(task.k, key, at.kvHead, at.sample);
    for (key += keys; key < at.seen.end; key += keys) {
      ring.template fetch<D>(task.k, key, at.kvHead, at.sample);
      ring.template fetch<D>(task.v, key - keys, at.kvHead, at.sample);
    }
    ring.template fetch<D>(task.v, key - keys, at.kvHead, at.sample);
  }

  MESHWORK_INLINE void compute(const Item &item) {
    QueryPlace at = placeOf(item, task.shape, task.work, keys);
    at.seen = sameInWarp(at.seen);
    RunningSoftmax softmax(task.shape.scale * log2e);
    float sums[D / 2];
    setAll(sums, 0);
    if (at.seen.first < at.seen.end)
      addKeys(at, softmax, sums);
    else
      shared.releaseKept();
    softmax.finish();
    store(at, softmax, sums);
  }

private:
  MESHWORK_INLINE void addKeys(const QueryPlace &at, RunningSoftmax &softmax,
                               float (&sums)[D / 2]) {
    const U32 queries = shared.own(shared.kept);
    const RowsMask mask = RowsMask::ofQueries(
        Mask(task.shape, at.sample), at.query + warpgroup() * warpgroupRows);
    float scores[keys / 2], factors[2];
    U32 probs[keys / 16][4];
    int key = at.seen.first;

    // Of scores that have been waited for.
    auto toProbabilities = [&](const auto &slot) MESHWORK_LAMBDA {
      hold(scores);
      ring.release(slot);
      leave(key, at);
      mask.hide(scores, key, -infinity);
      softmax.add(scores, factors);
    };

    auto k = ring.use();
    beginProducts();
    multiply<D, warpgroupRows, keys>(scores, queries, k.data);
    commitProducts();
    waitForProducts<0>();
    toProbabilities(k);
    toOperand(probs, scores);
    hold(probs);

    for (key += keys; key < at.seen.end; key += keys) {
      k = ring.use();
      beginProducts();
      multiply<D, warpgroupRows, keys>(scores, queries, k.data);
      commitProducts();
      auto v = ring.use();
      beginProducts();
      addProduct<keys>(sums, probs, v.data);
      commitProducts();
      waitForProducts<1>();
      toProbabilities(k);
      finishBeforeWait(softmax.anySum());
      waitForProducts<0>();
      hold(sums);
      hold(probs);
      ring.release(v);
#pragma unroll
      for (int i = 0; i < D / 2; ++i)
        sums[i] *= factors[i / 2 % 2];
      toOperand(probs, scores);
      hold(sums);
      hold(probs);
    }

    auto v = ring.use();
    beginProducts();
    addProduct<keys>(sums, probs, v.data);
    commitProducts();
    waitForProducts<0>();
    hold(sums);
    hold(probs);
    ring.release(v);
  }

  /// The queries are needed no more after the last tile's scores.
  MESHWORK_INLINE void leave(int key, const QueryPlace &at) {
    if (key + keys >= at.seen.end)
      shared.releaseKept();
  }

  MESHWORK_INLINE void store(const QueryPlace &at,
                             const RunningSoftmax &softmax,
                             const float (&sums)[D / 2]) {
    int query = at.query + warpgroup() * warpgroupRows;
    float inverses[2] = {softmax.inverse(0), softmax.inverse(1)};
    finishRows();
    storeRows<D>(shared.own(shared.staged), sums, inverses, task.out,
                 task.wideOut, query, at.head, at.sample);
    Lane lane;
    float *lse = reinterpret_cast<float *>(task.lse) +
                 at.sample * task.lseSample + at.head * task.lseHead + query;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      int row = lane.row + 8 * r;
      if (lane.column == 0 && query + row < task.shape.rows)
        lse[row] = softmax.logOfSum(r);
    }
  }
};

} // namespace meshwork::runtime::cuda
