#include "tools/meshwork/tune/Waits.h"

#include <algorithm>
#include <limits>

namespace meshwork::tune {
namespace {

using Kind = plan::CollectiveKind;

constexpr uint32_t cpAxis = 1, tpAxis = 2; // of a body's mesh
/// More may be hidden on more ranks, as far as the compiler chooses otherwise.
constexpr double marginOfGrowth = 0.02;

double ranksOf(const Choice &body) { return double{1} * body.tp * body.cp; }
} // namespace

/// Of a tensor of so many bytes on all ranks of the axis together. A ring hands
/// its parts on, as often as there are other ranks.
double WaitGrowth::secondsOf(const cost::Times &times, Kind kind, double bytes,
                             uint32_t axis) const {
  auto ranks = static_cast<double>(times.ranksOf({&axis, 1}));
  if (kind == Kind::permute)
    return (ranks - 1) * times.transfer(bytes / ranks, axis);
  bool isWhole = kind == Kind::reduce_scatter || kind == Kind::all_reduce;
  return times.collective(kind, isWhole ? bytes : bytes / ranks, {&axis, 1});
}

/// The least ratio, whatever the size.
double WaitGrowth::least(const Kinds &kinds, uint32_t axis, const Side &from,
                         const Side &to) const {
  auto timesOf = [&](const Mesh &mesh) {
    return cost::Times(machine, {mesh.ep, mesh.cp, mesh.tp});
  };
  cost::Times before = timesOf(from.mesh), after = timesOf(to.mesh);
  double least = std::numeric_limits<double>::infinity();
  for (Kind kind : kinds)
    for (double bytes = 1 << 10; bytes < 1e13; bytes *= 2)
      least = std::min(least,
                       secondsOf(after, kind, bytes * to.bytes, axis) /
                           secondsOf(before, kind, bytes * from.bytes, axis));
  return least;
}

double WaitGrowth::ofAxis(uint32_t axis, Word method, const Side &from,
                          const Side &to) {
  auto [at, isNew] = known.try_emplace({axis, method, from, to}, 0);
  if (isNew)
    at->second = least(
        method == "ring" ? Kinds{Kind::permute}
        : method == "ulysses"
            ? Kinds{Kind::all_to_all}
            : Kinds{Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce},
        axis, from, to);
  return at->second;
}

/// A rank's part of the residual is shared by `cp`, that of keys by `tp`.
Waits WaitGrowth::of(const Waits &waits, const Choice &from,
                     const Choice &body) {
  auto sideOf = [&](const Choice &one, uint32_t shares) {
    return Side{{one.ep, one.cp, one.tp},
                double{1} * one.micro / shares / from.micro};
  };
  double perSequence = ranksOf(body) / ranksOf(from) * from.micro / body.micro;
  Waits grown = waits;
  if (waits.tp > 0)
    grown.tp *= perSequence * ofAxis(tpAxis, {}, sideOf(from, from.cp),
                                     sideOf(body, body.cp));
  if (waits.cp > 0)
    grown.cp *= perSequence * ofAxis(cpAxis, body.method, sideOf(from, from.tp),
                                     sideOf(body, body.tp));
  for (auto [one, before] :
       {std::pair(&grown.tp, waits.tp), std::pair(&grown.cp, waits.cp)})
    *one = std::max(before, (1 - marginOfGrowth) * *one);
  return grown;
}

} // namespace meshwork::tune
