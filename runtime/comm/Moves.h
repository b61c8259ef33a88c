// What one rank has to do in a collective, whatever carries the bytes: boxes of
// its destinations and where they come from. Plan.fbs at Collective says what
// each kind means; this is the only place that turns it into indices.
#pragma once

#include "runtime/comm/Strided.h"
#include "runtime/comm/Transport.h"
#include <utility>

namespace meshwork::runtime {

struct Move {
  enum class Kind : uint8_t {
    copy,   // from group index `source`
    reduce, // of the sources of all, in group order
    zero    // of what no source fills
  };
  Kind kind;
  uint32_t source; // of copy
  uint32_t part;   // of the request
  Box box;
};

/// The moves that fill the destinations of group index `index` of `ranks`. An
/// all_reduce is one reduction of the whole, for which a transport shares out
/// the work. Boxes are not empty. Depends on shapes and strides alone, so every
/// rank knows every other's.
std::vector<Move> movesOf(const CollectiveRequest &request, uint32_t index,
                          uint32_t ranks);

/// Elements [first, second) of `count` that group index `index` of an
/// all_reduce reduces for all. Shares begin at multiples of 32 elements, so
/// that no cache line has two writers.
std::pair<int64_t, int64_t> shareOf(int64_t count, uint32_t index,
                                    uint32_t ranks);

/// Whether two ranks mean the same collective: all but names and addresses.
bool isSameCollective(const CollectiveRequest &a, const CollectiveRequest &b);

} // namespace meshwork::runtime
