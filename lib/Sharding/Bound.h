// What a reshard has at least still to send. Private to this folder.
#pragma once

#include "lib/Sharding/Moves.h"

namespace meshwork::sharding {

/// A rank must receive what it needs in the end and does not hold, and no step
/// lets a rank receive more than it is said to send. While a value is partial,
/// a rank holds nothing of use: a reduce_scatter sends at least what it leaves,
/// an all_reduce at least the whole. Looked at are a few ranks whose
/// coordinates are 0 or 1, as the first blocks are full. Besides, the local
/// tensor, with its padding, grows by no more than what is sent.
///
/// A step lowers the bound by no more than it sends (the bound is consistent),
/// so in an A* search the first visit of a state is its cheapest.
class Bound {
public:
  explicit Bound(const Problem &problem);

  int64_t elements(const Layout &layout) const;

private:
  static constexpr std::array<unsigned, 4> coordinates = {0x00, 0x55, 0x33,
                                                          0x0F};
  struct Range {
    int64_t begin, end;
  };
  Range rangeOf(const Layout &layout, int dim, unsigned rank) const;

  const Problem &problem;
  Layout goal;
  int64_t goalElements;
};

} // namespace meshwork::sharding
