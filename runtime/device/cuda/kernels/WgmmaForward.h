// Attention, forward. While tensor cores multiply a tile's scores, and before
// it the probabilities of the tile before with its values, the scores of the
// latter are exponentiated; the two warpgroups fill each other's gaps.
#pragma once

#include "runtime/device/cuda/kernels/WgmmaBlock.h"

namespace meshwork::runtime::cuda {

/// Softmax over tiles of keys, with a running maximum and sum of a thread's two
/// rows. Scores are products of q and k; `factor` turns them to powers of two.
class RunningSoftmax {
public:
  MESHWORK_INLINE explicit RunningSoftmax(float factor) : factor(factor) {}

  /// Scores to powers, and what came before is to be multiplied by `factors`.
  template <int R>
  MESHWORK_INLINE void add(float (&scores)[R], float (&factors)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float before = maximum[r], largest = before;
#pragma unroll
      for (int j = 0; j < R / 4; ++j)
        largest = __builtin_fmaxf(
            largest,
            __builtin_fmaxf(scores[4 * j + 2 * r], scores[4 * j + 2 * r + 1]));
      largest = __builtin_fmaxf(largest, shuffled(largest, 1));
      maximum[r] = __builtin_fmaxf(largest, shuffled(largest, 2));
      float shift = shiftOf(r) * factor;
      factors[r] = exponential2(__builtin_fmaf(before, factor, -shift));
      float added = 0;
#pragma unroll
      for (int j = 0; j < R / 4; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &score = scores[4 * j + 2 * r + e];
          score = exponential2(__builtin_fmaf(score, factor, -shift));
          added += score;
        }
      sum[r] = __builtin_fmaf(sum[r], factors[r], added);
    }
  }

  /// Over all columns, after the last tile.
  MESHWORK_INLINE void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += shuffled(sum[r], 1);
      sum[r] += shuffled(sum[r], 2);
    }
  }
  MESHWORK_INLINE float inverse(int r) const {
    return sum[r] > 0 ? 1 / sum[r] : 0.0f;
  }
  MESHWORK_INLINE float logOfSum(int r) const {
    return (shiftOf(r) * factor + __nvvm_lg2_approx_ftz_f(sum[r])) * ln2;
  }

private:
  /// A row that has seen no key yet: any finite shift keeps its powers zero.
  MESHWORK_INLINE float shiftOf(int r) const {
    return maximum[r] == -infinity ? 0.0f : maximum[r];
  }

  float factor;
  float maximum[2] = {-infinity, -infinity}, sum[2] = {0, 0};
};

template <int D> class Forward {
  using Plan = ForwardPlan<D>;
  static constexpr int keys = Plan::Ring::rows;

  const ForwardTask &task;
  const Shared<Plan> &shared;
  Ring<Plan> ring;

  struct Place {
    int sample, head, kvHead, query;
    Range seen; // from a multiple of `keys` on
  };
  MESHWORK_INLINE Place placeOf(const Item &item) const {
    const WgmmaShape &shape = task.shape;
    int block = shape.causal ? task.work.blocks - 1 - item.block : item.block;
    Place place;
    place.sample = item.pair / shape.heads;
    place.head = item.pair % shape.heads;
    place.kvHead = place.head / (shape.heads / shape.kvHeads);
    place.query = block * wgmmaRows;
    place.seen = Mask(shape, place.sample).keysOfBlock(place.query, keys);
    return place;
  }

public:
  MESHWORK_INLINE Forward(const ForwardTask &task, const Shared<Plan> &shared)
      : task(task), shared(shared), ring(shared) {}

  MESHWORK_INLINE void produce() {
    Item item;
    for (int round = 0; (item = itemOf(task.work, round)).exists; ++round) {
      Place at = placeOf(item);
      waitFor(shared.keptEmpty, (round & 1) ^ 1);
      arriveExpecting(shared.keptFull, Plan::kept);
#pragma unroll
      for (int part = 0; part < 2; ++part)
        loadTile<warpgroupRows, D>(shared.kept + part * Plan::tile, task.q,
                                   at.query + part * warpgroupRows, at.head,
                                   at.sample, shared.keptFull);
      int key = at.seen.first;
      if (key >= at.seen.end)
        continue; // These queries see none of the keys.
      fetch(task.k, key, at);
      for (key += keys; key < at.seen.end; key += keys) {
        fetch(task.k, key, at);
        fetch(task.v, key - keys, at);
      }
      fetch(task.v, key - keys, at);
    }
  }

  MESHWORK_INLINE void consume() {
    Item item;
    for (int round = 0; (item = itemOf(task.work, round)).exists; ++round) {
      waitFor(shared.keptFull, round & 1);
      compute(placeOf(item));
    }
    if (isFirstOfWarpgroup())
      finishStores();
  }

private:
  MESHWORK_INLINE void fetch(const TensorMap &map, int key, const Place &at) {
    auto slot = ring.fill();
    arriveExpecting(slot.full, Plan::slot);
    loadTile<keys, D>(slot.data, map, key, at.kvHead, at.sample, slot.full);
  }

  MESHWORK_INLINE void compute(const Place &at) {
    RunningSoftmax softmax(task.shape.scale * log2e);
    float sums[D / 2];
    setAll(sums, 0);
    if (at.seen.first < at.seen.end)
      addKeys(at, softmax, sums);
    else if (isFirstLane())
      arrive(shared.keptEmpty);
    softmax.finish();
    store(at, softmax, sums);
  }

  MESHWORK_INLINE void addKeys(const Place &at, RunningSoftmax &softmax,
                               float (&sums)[D / 2]) {
    const U32 queries = shared.own(shared.kept);
    const RowsMask mask = RowsMask::ofQueries(
        Mask(task.shape, at.sample), at.query + warpgroup() * warpgroupRows);
    float scores[keys / 2], factors[2];
    U32 probs[keys / 16][4];
    int key = at.seen.first;

    auto k = ring.use();
    beginProducts();
    multiply<D, warpgroupRows, keys>(scores, queries, k.data);
    commitProducts();
    waitForProducts<0>();
    hold(scores);
    ring.release(k);
    leave(key, at);
    mask.hide(scores, key, -infinity);
    softmax.add(scores, factors);
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
      hold(scores);
      ring.release(k);
      leave(key, at);
      mask.hide(scores, key, -infinity);
      softmax.add(scores, factors);
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
  MESHWORK_INLINE void leave(int key, const Place &at) {
    if (key + keys >= at.seen.end && isFirstLane())
      arrive(shared.keptEmpty);
  }

  MESHWORK_INLINE void store(const Place &at, const RunningSoftmax &softmax,
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
