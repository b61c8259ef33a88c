// Which tokens go to which rank in which round. One block walks the tokens in
// their order, as many at a time as it has threads. Where a token finds no slot
// the round ends, and the block goes on from that token with empty ranks.
#include "passes/codegen/gpu/library/AssignSlotsGeometry.h"
#include "passes/codegen/gpu/library/Warp.h"

namespace meshwork {
namespace {
using namespace assignSlots;

struct Assignment {
  const i32 *choices;
  i32 *slots, *ranks, *places;
  i64 tokens, k, experts, most, numRanks, numSlots,
      room; // places of each token

  /// Choices of a token that count on a rank.
  __device__ i32 countOn(i64 rank, i64 token) const {
    i64 count = 0;
    for (i64 i = 0; token < tokens && i < k; ++i) {
      i32 choice = choices[token * k + i];
      count += choice >= 0 && choice / experts == rank;
    }
    i64 ofToken = k < experts ? k : experts;
    return static_cast<i32>(count < ofToken ? count : ofToken);
  }
};

/// Tokens and their choices: of a block both fit one word, and add up at once.
struct Count {
  i32 tokens, choices;

  static constexpr i32 bits = 20;
  static __device__ i32 packed(i32 choices) {
    return choices ? (1 << bits) + choices : 0;
  }
  __device__ Count plus(i32 word) const {
    return {tokens + (word >> bits), choices + (word & ((1 << bits) - 1))};
  }
};

__device__ inline i32 warpOfBlock() {
  return static_cast<i32>(threadInBlock()) / lanes;
}

/// In shared memory. Ranks are looked at `lanes` at a time, a *group*.
struct Scratch {
  i32 before[warps][lanes + 1]; // packed: what warps before send each rank
  i32 firstFull[warps];         // the first token of a warp without a slot
  Count begin[lanes];           // what each rank has from blocks before
  Count taken[1];               // in this round, of each rank

  /// All threads: fills `before` and `begin` for the ranks of a group, to which
  /// threads send their tokens. `takes`: and they keep the slots.
  __device__ void count(const Assignment &all, i64 first, i64 token,
                        bool takes) {
    meetBlock(); // Others may still be read.
    for (i32 i = 0; i < sizeOf(all, first); ++i) {
      i32 sum = sumUpTo(Count::packed(all.countOn(first + i, token)));
      if (laneOfWarp() == lanes - 1)
        before[warpOfBlock()][i] = sum;
    }
    meetBlock();
    if (warpOfBlock() < sizeOf(all, first))
      addUp(first + warpOfBlock(), takes); // A warp for each rank.
    meetBlock();
  }

  /// `visit(rank, there)` for each rank of this thread's token, ascending; with
  /// it the rank has what `there` says.
  template <typename Visit>
  __device__ void forEach(const Assignment &all, i64 token, bool takes,
                          Visit visit) {
    for (i64 first = 0; first < all.numRanks; first += lanes) {
      count(all, first, token, takes);
      for (i32 i = 0; i < sizeOf(all, first); ++i) {
        i32 own = Count::packed(all.countOn(first + i, token)),
            upTo = before[warpOfBlock()][i] + sumUpTo(own);
        if (own)
          visit(first + i, begin[i].plus(upTo));
      }
    }
  }

  /// How many of the block's tokens find a slot before one does not.
  __device__ i32 countFitting(const Assignment &all, i64 from) {
    bool isFull = false;
    forEach(all, from + threadInBlock(), false, [&](i64, Count there) {
      isFull |= there.tokens > all.numSlots || there.choices > all.most;
    });
    i32 lane = firstLane(isFull);
    if (laneOfWarp() == 0)
      firstFull[warpOfBlock()] =
          lane < lanes ? warpOfBlock() * lanes + lane : threads;
    meetBlock();
    i32 fitting = threads;
    for (i32 warp = 0; warp < warps; ++warp)
      fitting = smallerOf(fitting, firstFull[warp]);
    return fitting;
  }

  /// Gives the block's first `fitting` tokens their slots.
  __device__ void place(const Assignment &all, i64 from, i32 fitting,
                        i64 round) {
    i64 token = from + threadInBlock(), at = token * all.room;
    if (static_cast<i32>(threadInBlock()) >= fitting)
      token = all.tokens; // none
    forEach(all, token, true, [&](i64 rank, Count there) {
      i64 slot = there.tokens - 1;
      all.slots[(round * all.numRanks + rank) * all.numSlots + slot] =
          static_cast<i32>(token);
      all.ranks[at] = static_cast<i32>(rank);
      all.places[round * all.tokens * all.room + at++] =
          static_cast<i32>(rank * all.numSlots + slot);
    });
  }

  __device__ void clear(i64 numRanks) {
    for (i64 rank = threadInBlock(); rank < numRanks; rank += threads)
      taken[rank] = {0, 0};
  }

private:
  static __device__ i32 sizeOf(const Assignment &all, i64 first) {
    i64 left = all.numRanks - first;
    return left < lanes ? static_cast<i32>(left) : lanes;
  }

  __device__ void addUp(i64 rank, bool takes) {
    i32 &cell = before[laneOfWarp()][warpOfBlock()];
    i32 own = cell, upTo = sumUpTo(own);
    cell = upTo - own;
    if (laneOfWarp() != lanes - 1)
      return;
    begin[warpOfBlock()] = taken[rank];
    if (takes)
      taken[rank] = taken[rank].plus(upTo);
  }
};
static_assert(warps == lanes, "a lane adds for a warp, a warp for a rank");
} // namespace

/// Plan.fbs says what is written, at AssignSlots; slots, ranks and places are
/// -1 before. One block.
DEVICE_FUNCTION void meshwork_assign_slots(const i32 *choices, i32 *slots,
                                           i32 *ranks, i32 *places, i32 *last,
                                           i64 tokens, i64 k, i64 experts,
                                           i64 most, i64 numRanks, i64 numSlots,
                                           i64 room) {
  Assignment all = {choices, slots, ranks,    places,   tokens, k,
                    experts, most,  numRanks, numSlots, room};
  auto &scratch = *reinterpret_cast<Scratch *>(meshwork_shared);
  i64 round = 0;
  scratch.clear(numRanks);
  for (i64 begin = 0; begin < tokens;) {
    i32 fitting = scratch.countFitting(all, begin);
    scratch.place(all, begin, fitting, round);
    begin += fitting;
    if (fitting == threads)
      continue;
    ++round;
    meetBlock(); // Slots taken were read before.
    scratch.clear(numRanks);
  }
  if (threadInBlock() == 0)
    *last = static_cast<i32>(round);
}

} // namespace meshwork
