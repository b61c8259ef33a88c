// Where ranks meet: collectives and transfers. A rank leaves what it brings;
// once all that take part have come, the values move.
#pragma once

#include "passes/verify/RankState.h"
#include <array>
#include <deque>
#include <map>

namespace meshwork::verify {

/// A rank that has come to a collective, or to a copy on a channel, with its
/// views where they were then.
struct Arrival {
  const plan::Instruction *instruction;
  struct Part {
    PlacedView src, dst;
  };
  std::vector<Part> parts;
  bool isSkipped; // last_only, in another action than the last

  /// Whether other ranks have to come to it too.
  bool meets() const { return !isSkipped && instruction->op_as_Collective(); }
  const plan::Collective &op() const {
    return *instruction->op_as_Collective();
  }
};

/// A rank's collectives and what its channels run, in the order in which it
/// comes to them. Channel 0 is the rank itself, which goes on when its
/// collective is done; the others run beside it.
struct Channels {
  static constexpr size_t most = 8;
  std::array<std::deque<Arrival>, most + 1> waiting;
  std::array<uint32_t, most + 1> done = {}; // of this run of the list

  bool areEmpty() const;
};

/// One side of a transfer between two ranks.
struct Passing {
  uint32_t action; // of its rank
  std::vector<PlacedView> parts;
};

/// Moves what one group brings, in the order of its members.
absl::Status meet(const std::vector<RankState *> &members,
                  const std::vector<const Arrival *> &arrivals);

/// Copies what one rank sends to where the other one wants it.
absl::Status pass(RankState &sender, const Passing &sent, RankState &receiver,
                  const Passing &received);

} // namespace meshwork::verify
