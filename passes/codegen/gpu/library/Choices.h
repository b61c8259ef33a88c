// Choices of experts, in parts: a block has a part, a thread of it an expert,
// and walks the part's choices in their order. So there are no atomics, and the
// outcome does not depend on which thread is first.
#pragma once

#include "passes/codegen/gpu/library/ChoicesGeometry.h"
#include "passes/codegen/gpu/library/Warp.h"

namespace meshwork {

/// Choices [begin, end) of part `index`, of `ofPart` each.
struct Part {
  i64 begin, end;

  __device__ Part(i64 index, i64 ofPart, i64 choices)
      : begin(index * ofPart),
        end(begin + ofPart < choices ? begin + ofPart : choices) {}
};

constexpr i32 choicesAtOnce = static_cast<i32>(choiceParts::choices);
__device__ inline i32 *sharedChoices() {
  return reinterpret_cast<i32 *>(meshwork_shared);
}

/// `visit(number)` for the part's choices that are `expert`, ascending;
/// `load(number)` is called once for each choice, by some thread.
template <typename Load, typename Visit>
__device__ inline void forEachOf(i64 expert, const Part &part, i64 threads,
                                 Load load, Visit visit) {
  for (i64 begin = part.begin; begin < part.end; begin += choicesAtOnce) {
    i32 count = smallerOf(choicesAtOnce, static_cast<i32>(part.end - begin));
    meetBlock();
    for (i64 i = threadInBlock(); i < count; i += threads)
      sharedChoices()[i] = load(begin + i);
    meetBlock();
    for (i32 i = 0; i < count; ++i)
      if (sharedChoices()[i] == expert)
        visit(begin + i);
  }
}

/// counts[e] = how many choices of the part are expert first + e.
template <typename Load>
__device__ inline void countOf(const Part &part, i64 threads, i64 first,
                               i64 experts, Load load, i32 *counts) {
  for (i64 begin = 0; begin < experts; begin += threads) {
    i64 expert = begin + threadInBlock();
    i32 count = 0;
    forEachOf(first + expert, part, threads, load, [&](i64) { ++count; });
    if (expert < experts)
      counts[expert] = count;
  }
}

} // namespace meshwork
