// The cheapest way between two shardings over a few axes. Private to this
// folder; Reshard.h is the interface.
#pragma once

#include <array>
#include <optional>

#include "lib/Sharding/Reshard.h"

namespace meshwork::sharding {

constexpr int maxSearchAxes = 8;
constexpr int maxSearchDims = 30;
constexpr size_t maxSearchStates = 200000;

/// Where each axis is, a byte an axis: five bits of bin, three of position.
/// Small, so that looking a sharding up costs nanoseconds.
class State {
public:
  static constexpr int replicated = 30, partial = 31; // bins below are dims

  int bin(int axis) const { return (bits >> (8 * axis + 3)) & 31; }
  int position(int axis) const { return (bits >> (8 * axis)) & 7; }
  void place(int axis, int bin, int position) {
    bits &= ~(uint64_t{0xFF} << (8 * axis));
    bits |= static_cast<uint64_t>(bin << 3 | position) << (8 * axis);
  }
  uint64_t bits = 0;
};
inline bool operator==(State a, State b) { return a.bits == b.bits; }

struct Problem {
  std::vector<int64_t> shape;
  std::vector<int64_t> sizes; // of the axes, each 2 or more
  int64_t elementBytes = 1;
  State from, to;
};

struct Move {
  Step::Kind kind = Step::Kind::slice;
  int dim = -1, toDim = -1;
  int64_t bytesSent = 0;
  State after;
};

/// Nothing when maxSearchStates are not enough.
std::optional<std::vector<Move>> search(const Problem &problem);

} // namespace meshwork::sharding
