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
  i64 tokens, k, experts, numRanks, numSlots, room; // places of each token

  /// Where a token goes: a bit for each of `lanes` ranks from `first` on.
  __device__ u32 ranksOf(i64 token, i64 first) const {
    u32 result = 0;
    for (i64 i = 0; token < tokens && i < k; ++i) {
      i32 choice = choices[token * k + i];
      i64 rank = choice / experts;
      if (choice >= 0 && rank < numRanks && rank >= first &&
          rank < first + lanes)
        result |= 1u << (rank - first);
    }
    return result;
  }
};

__device__ inline i32 warpOfBlock() {
  return static_cast<i32>(threadInBlock()) / lanes;
}

/// In shared memory. A row is of a warp: how many tokens its predecessors send
/// to each of `lanes` ranks in this round.
struct Scratch {
  i32 before[warps][lanes + 1];
  i32 firstFull[warps]; // the first token of a warp without a slot
  i32 taken[1];         // slots of each rank in this round

  /// All threads: fills `before`; a thread's token goes to `ranks`, which begin
  /// at rank `first`. `takes`: and they keep the slots.
  __device__ void count(i64 numRanks, i64 first, u32 ranks, bool takes) {
    meetBlock(); // Others may still be read.
    for (i32 i = 0; i < lanes; ++i) {
      u32 senders = ballot(ranks >> i & 1);
      if (laneOfWarp() == i)
        before[warpOfBlock()][i] = static_cast<i32>(countBits(senders));
    }
    meetBlock();
    if (i64 rank = first + warpOfBlock(); rank < numRanks)
      addUp(rank, takes); // A warp for each rank: they are as many as lanes.
    meetBlock();
  }

  /// `visit(rank, slot)` for each rank of this thread's token, ascending.
  template <typename Visit>
  __device__ void forEach(const Assignment &all, i64 token, bool takes,
                          Visit visit) {
    for (i64 first = 0; first < all.numRanks; first += lanes) {
      u32 ranks = all.ranksOf(token, first);
      count(all.numRanks, first, ranks, takes);
      for (i32 i = 0; i < lanes; ++i) {
        u32 senders = ballot(ranks >> i & 1);
        if (ranks >> i & 1)
          visit(first + i, before[warpOfBlock()][i] + countBefore(senders));
      }
    }
  }

  /// How many of the block's tokens find a slot before one does not.
  __device__ i32 countFitting(const Assignment &all, i64 begin) {
    bool isFull = false;
    forEach(all, begin + threadInBlock(), false,
            [&](i64, i32 slot) { isFull |= slot >= all.numSlots; });
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
  __device__ void place(const Assignment &all, i64 begin, i32 fitting,
                        i64 round) {
    i64 token = begin + threadInBlock(), at = token * all.room;
    if (static_cast<i32>(threadInBlock()) >= fitting)
      token = all.tokens; // none
    forEach(all, token, true, [&](i64 rank, i32 slot) {
      all.slots[(round * all.numRanks + rank) * all.numSlots + slot] =
          static_cast<i32>(token);
      all.ranks[at] = static_cast<i32>(rank);
      all.places[round * all.tokens * all.room + at++] =
          static_cast<i32>(rank * all.numSlots + slot);
    });
  }

  __device__ void clear(i64 numRanks) {
    for (i64 rank = threadInBlock(); rank < numRanks; rank += threads)
      taken[rank] = 0;
  }

private:
  __device__ void addUp(i64 rank, bool takes) {
    i32 &cell = before[laneOfWarp()][warpOfBlock()];
    bool isLast = laneOfWarp() == lanes - 1; // It alone reads and writes.
    i32 begin = fromLane(isLast ? taken[rank] : 0, lanes - 1), own = cell,
        upTo = begin + sumUpTo(own);
    cell = upTo - own;
    if (takes && isLast)
      taken[rank] = upTo;
  }
};
static_assert(warps == lanes, "a lane adds for a warp, a warp for a rank");
} // namespace

/// Plan.fbs says what is written, at AssignSlots; slots, ranks and places are
/// -1 before. One block.
DEVICE_FUNCTION void meshwork_assign_slots(const i32 *choices, i32 *slots,
                                           i32 *ranks, i32 *places, i32 *last,
                                           i64 tokens, i64 k, i64 experts,
                                           i64 numRanks, i64 numSlots,
                                           i64 room) {
  Assignment all = {choices, slots,   ranks,    places,   tokens,
                    k,       experts, numRanks, numSlots, room};
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
