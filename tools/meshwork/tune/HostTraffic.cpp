#include "tools/meshwork/tune/HostTraffic.h"

#include <algorithm>

namespace meshwork::tune {
namespace {

/// Other methods of the context may keep a little less.
constexpr double margin = 0.1;

/// Whether what layers keep of one tells what they keep of the other.
bool isAlike(const Choice &body, const Choice &from) {
  return body.ep == from.ep && body.exchange == from.exchange &&
         (from.cp == 1 ||
          (body.method == from.method && body.layout == from.layout));
}

/// The part of a tensor of `from` that one of `body` has at least.
double partOf(const Choice &body, const Choice &from) {
  bool isShared = body.sequenceParallel && !from.sequenceParallel;
  double of = isShared ? 1 : from.tp;
  return double{1} * body.micro / from.micro * std::min(1.0, of / body.tp) *
         std::min(1.0, double{1} * from.cp / body.cp);
}
} // namespace

double besides(const cost::Machine &machine, bool takesCores, double computing,
               double moving) {
  if (takesCores)
    return computing + moving;
  return std::max(computing, moving) +
         std::min(machine.slowdown, 1.0) * std::min(computing, moving);
}

/// Forward passes send it, backward passes bring it.
double HostTraffic::seconds(double computing, const Choice &body,
                            const ToHost &moved, const Choice &from) const {
  if (!isAlike(body, from))
    return computing;
  double part = partOf(body, from), bytes = 0;
  for (auto [size, count] : moved)
    if (part * size >= leastBytes)
      bytes += part * size * static_cast<double>(count);
  if (bytes == 0)
    return computing;
  cost::Times times(machine, {body.ep, body.cp, body.tp});
  return besides(machine, times.hostCopyTakesCores(), computing,
                 2 * (1 - margin) * times.hostCopy(bytes));
}

} // namespace meshwork::tune
