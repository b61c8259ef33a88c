// A counting sort of choices by their experts, in parts: each part is counted
// by a block, sums of the counts say where its choices go, and a block puts
// them there. A thread has an expert and walks its part's choices in their
// order, so there are no atomics, and equal choices stay in order.
#include "passes/codegen/gpu/library/Choices.h"
#include "passes/codegen/gpu/library/Warp.h"

namespace meshwork {
namespace {

struct BlockSum {
  i32 before, sum; // of the threads before this one, and of all
};
__device__ inline BlockSum sumBefore(i32 own, i64 threads) {
  i32 *ofWarp = reinterpret_cast<i32 *>(meshwork_shared), upTo = sumUpTo(own);
  i32 warp = static_cast<i32>(threadInBlock()) / lanes;
  meetBlock(); // Another sum may be there.
  if (laneOfWarp() == lanes - 1)
    ofWarp[warp] = upTo;
  meetBlock();
  BlockSum sum = {upTo - own, 0};
  for (i32 i = 0; i < threads / lanes; ++i) {
    sum.before += i < warp ? ofWarp[i] : 0;
    sum.sum += ofWarp[i];
  }
  return sum;
}
} // namespace

/// counts[part, e] = how many choices of a block's part are expert first + e,
/// e < experts; first is 0 where there is none.
DEVICE_FUNCTION void meshwork_count_choices(const i32 *choices,
                                            const i32 *first, i32 *counts,
                                            i64 hasFirst, i64 threads,
                                            i64 numChoices, i64 ofPart,
                                            i64 experts) {
  countOf(
      Part(blockInGrid(), ofPart, numChoices), threads, hasFirst ? *first : 0,
      experts, [&](i64 choice) { return choices[choice]; },
      counts + blockInGrid() * experts);
}

/// One block: counts become the row at which a part's choices of an expert
/// begin, and begins[e] that of all parts', at most `rows`.
DEVICE_FUNCTION void meshwork_begin_rows(i32 *counts, i32 *begins, i64 threads,
                                         i64 parts, i64 experts, i64 rows) {
  i64 sum = 0;
  auto atMostRows = [&](i64 row) {
    return static_cast<i32>(row < rows ? row : rows);
  };
  for (i64 begin = 0; begin < experts; begin += threads) {
    i64 expert = begin + threadInBlock(), most = expert < experts ? parts : 0;
    i32 own = 0;
#pragma unroll 8
    for (i64 part = 0; part < most; ++part)
      own += counts[part * experts + expert];
    BlockSum all = sumBefore(own, threads);
    i32 row = static_cast<i32>(sum) + all.before;
    if (expert < experts)
      begins[expert] = atMostRows(row);
#pragma unroll 8
    for (i64 part = 0; part < most; ++part) {
      i32 count = counts[part * experts + expert];
      counts[part * experts + expert] = row;
      row += count;
    }
    sum += all.sum;
  }
  if (threadInBlock() == 0)
    begins[experts] = atMostRows(sum);
}

/// order[row] = choice, tokens[row] = choice / k, places[choice] = row; -1
/// where there is none. A block has a part, and a share of the rows behind the
/// last.
DEVICE_FUNCTION void meshwork_place_rows(const i32 *choices, const i32 *first,
                                         i32 *order, i32 *tokens, i32 *places,
                                         const i32 *begins, const i32 *counts,
                                         i64 hasFirst, i64 threads,
                                         i64 numChoices, i64 ofPart,
                                         i64 experts, i64 k, i64 rows) {
  Part part(blockInGrid(), ofPart, numChoices);
  i64 offset = hasFirst ? *first : 0;
  for (i64 i = part.begin + threadInBlock(); i < part.end; i += threads)
    if (static_cast<u64>(choices[i] - offset) >= static_cast<u64>(experts))
      places[i] = -1;
  for (i64 begin = 0; begin < experts; begin += threads) {
    i64 expert = begin + threadInBlock();
    i32 row = expert < experts ? counts[blockInGrid() * experts + expert] : 0;
    bool isThere = expert < experts;
    auto load = [&](i64 choice) { return choices[choice]; };
    forEachOf(offset + expert, part, threads, load, [&](i64 choice) {
      if (!isThere)
        return;
      places[choice] = row < rows ? row : -1;
      if (row < rows) {
        order[row] = static_cast<i32>(choice);
        tokens[row] = static_cast<i32>(choice / k);
      }
      ++row;
    });
  }
  i64 parts = (numChoices + ofPart - 1) / ofPart;
  for (i64 row = begins[experts] + blockInGrid() * threads + threadInBlock();
       row < rows; row += parts * threads)
    order[row] = tokens[row] = -1;
}

} // namespace meshwork
