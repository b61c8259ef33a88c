// Seconds in which a rank computes nothing because of what moves, and how they
// grow as more ranks share a microbatch.
#pragma once

#include "lib/Cost/Times.h"
#include "tools/meshwork/tune/Choice.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace meshwork::tune {

/// By the axes over which it moves.
struct Waits {
  double tp = 0, cp = 0, other = 0;

  double all() const { return tp + cp + other; }
  Waits plus(const Waits &more) const {
    return {tp + more.tp, cp + more.cp, other + more.other};
  }
  Waits positive() const {
    return {std::max(tp, 0.0), std::max(cp, 0.0), std::max(other, 0.0)};
  }
  Waits times(double factor) const {
    return {factor * tp, factor * cp, factor * other};
  }
};

class WaitGrowth {
public:
  explicit WaitGrowth(const cost::Machine &machine) : machine(machine) {}

  /// Seconds that the ranks of `body` wait for one sequence at least, added up
  /// over them, by those of a body on fewer of them, or with another
  /// microbatch. Their tensors are as large in all; how large, and in which
  /// collectives they move, is not known: what grows least counts.
  Waits of(const Waits &waits, const Choice &from, const Choice &body);

private:
  struct Mesh {
    uint32_t ep, cp, tp;
    auto operator<=>(const Mesh &) const = default;
  };
  using Kinds = std::vector<plan::CollectiveKind>;
  struct Side {
    Mesh mesh;
    double bytes; // of the whole tensor, by those of the other side
    auto operator<=>(const Side &) const = default;
  };
  double secondsOf(const cost::Times &times, plan::CollectiveKind kind,
                   double bytes, uint32_t axis) const;
  double least(const Kinds &kinds, uint32_t axis, const Side &from,
               const Side &to) const;
  double ofAxis(uint32_t axis, Word method, const Side &from, const Side &to);

  const cost::Machine machine;
  std::map<std::tuple<uint32_t, Word, Side, Side>, double> known;
};

} // namespace meshwork::tune
