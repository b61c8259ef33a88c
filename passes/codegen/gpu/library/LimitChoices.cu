// Which choices find their expert with room left. The choices of a group are
// walked first choice by first choice, then second by second; they are counted
// in parts, as where rows are sorted.
#include "passes/codegen/gpu/library/Choices.h"

namespace meshwork {
namespace {

/// A group's choices by their turn, and the part of a block.
struct Turns {
  i64 group, tokens, k; // tokens of a group
  Part part;

  __device__ Turns(i64 tokens, i64 k, i64 ofPart, i64 parts)
      : group(blockInGrid() / parts), tokens(tokens), k(k),
        part(blockInGrid() % parts, ofPart, tokens * k) {}

  /// Where the choice stands whose turn it is.
  __device__ i64 place(i64 turn) const {
    return (group * tokens + turn % tokens) * k + turn / tokens;
  }
};
} // namespace

/// counts[group, part, e] = how many choices of a block's part are expert e.
DEVICE_FUNCTION void meshwork_count_turns(const i32 *choices, i32 *counts,
                                          i64 threads, i64 tokens, i64 k,
                                          i64 ofPart, i64 parts, i64 experts) {
  Turns turns(tokens, k, ofPart, parts);
  countOf(
      turns.part, threads, 0, experts,
      [&](i64 turn) { return choices[turns.place(turn)]; },
      counts + blockInGrid() * experts);
}

/// A block has a group: counts become those of the parts before.
DEVICE_FUNCTION void meshwork_add_turns(i32 *counts, i64 threads, i64 parts,
                                        i64 experts) {
  i32 *own = counts + blockInGrid() * parts * experts;
  for (i64 expert = threadInBlock(); expert < experts; expert += threads) {
    i32 sum = 0;
    for (i64 part = 0; part < parts; ++part) {
      i32 count = own[part * experts + expert];
      own[part * experts + expert] = sum;
      sum += count;
    }
  }
}

/// kept = the choice, or -1 where its expert has `most` before it; -1, too,
/// where it is no expert's.
DEVICE_FUNCTION void meshwork_keep_choices(const i32 *choices, i32 *kept,
                                           const i32 *counts, i64 threads,
                                           i64 tokens, i64 k, i64 ofPart,
                                           i64 parts, i64 experts, i64 most) {
  Turns turns(tokens, k, ofPart, parts);
  auto load = [&](i64 turn) { return choices[turns.place(turn)]; };
  for (i64 turn = turns.part.begin + threadInBlock(); turn < turns.part.end;
       turn += threads)
    if (static_cast<u64>(load(turn)) >= static_cast<u64>(experts))
      kept[turns.place(turn)] = -1;
  for (i64 begin = 0; begin < experts; begin += threads) {
    i64 expert = begin + threadInBlock();
    bool isThere = expert < experts;
    i64 taken = isThere ? counts[blockInGrid() * experts + expert] : 0;
    forEachOf(expert, turns.part, threads, load, [&](i64 turn) {
      if (isThere)
        kept[turns.place(turn)] =
            taken++ < most ? static_cast<i32>(expert) : -1;
    });
  }
}

} // namespace meshwork
