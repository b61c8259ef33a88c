// Each collective alone: its parts share no bytes but where Plan.fbs says so.
// CheckMoves.cpp has judged their shapes.
#include "lib/Plan/Overlap.h"
#include "lib/Plan/PlanCheckInternal.h"
#include "meshwork/Plan/Frame.h"
#include <algorithm>

namespace meshwork::plan {
namespace {
using Kind = CollectiveKind;

/// One collective while its parts are looked at.
struct Site {
  const Collective &op;
  int64_t ranks; // of a group
};

struct Pair {
  const ViewInfo &src, &dst;
  const Transfer &part;
};

/// `block` is the part of `whole` that belongs to the rank itself.
bool isOwnBlock(const Site &site, const ViewInfo &whole, const ViewInfo &block,
                size_t dim) {
  uint32_t before = whole.shifts ? whole.shifts->size() : 0;
  if (whole.buffer != block.buffer || whole.offset != block.offset ||
      whole.strides != block.strides || !block.shifts ||
      block.shifts->size() != before + 1 || !advanceAlike(whole, block))
    return false;
  for (uint32_t i = 0; i <= before; ++i) {
    const Shift &found = *block.shifts->Get(i);
    const auto &axes = orEmpty(found.axes()),
               &expected = i < before ? orEmpty(whole.shifts->Get(i)->axes())
                                      : *site.op.axes();
    uint64_t bytes = i < before
                         ? whole.shifts->Get(i)->bytes()
                         : static_cast<uint64_t>(block.shape[dim]) *
                               static_cast<uint64_t>(whole.strides[dim]) *
                               sizeOf(whole.dtype);
    if (found.bytes() != bytes ||
        !std::equal(axes.begin(), axes.end(), expected.begin(), expected.end()))
      return false;
  }
  // The padding of the last block must not be another block's elements.
  bool outermost = whole.contiguous;
  for (size_t i = 0; i < dim; ++i)
    outermost &= whole.shape[i] == 1;
  return outermost || whole.shape[dim] == block.shape[dim] * site.ranks;
}

bool mayAlias(const Site &site, const Pair &pair) {
  size_t dim = static_cast<size_t>(pair.part.dim());
  switch (site.op.kind()) {
  case Kind::all_reduce:
    return isSameView(pair.src, pair.dst);
  case Kind::reduce_scatter:
    return isOwnBlock(site, pair.src, pair.dst, dim);
  case Kind::all_gather:
    return isOwnBlock(site, pair.dst, pair.src, dim);
  default:
    return false;
  }
}

/// Where a part may touch its buffer, on any rank.
struct Touched {
  uint32_t buffer;
  uint64_t begin, end;
  uint32_t part;
  const ViewInfo *view;
  bool written;
};

/// No part writes what another one touches.
absl::Status checkApart(std::vector<Touched> &touches) {
  std::sort(touches.begin(), touches.end(), [](auto &a, auto &b) {
    return std::tie(a.buffer, a.begin) < std::tie(b.buffer, b.begin);
  });
  for (size_t i = 0; i < touches.size(); ++i)
    for (size_t k = i + 1;
         k < touches.size() && touches[k].buffer == touches[i].buffer &&
         touches[k].begin < touches[i].end;
         ++k) {
      const Touched &a = touches[i], &b = touches[k];
      if (a.part != b.part && (a.written || b.written) &&
          mayShareBytes(*a.view, *b.view))
        return bad("parts ", std::min(a.part, b.part), " and ",
                   std::max(a.part, b.part),
                   " share bytes that one of them writes");
    }
  return absl::OkStatus();
}
} // namespace

absl::Status checkCollective(const ProgramCheck &check, const Collective &op) {
  Site site{op, static_cast<int64_t>(groupSize(check.plan, op.axes()))};
  std::vector<Touched> touches;
  uint32_t index = 0;
  for (const Transfer *part : *op.parts()) {
    Pair pair{check.views[part->src()], check.views[part->dst()], *part};
    if (mayShareBytes(pair.src, pair.dst) && !mayAlias(site, pair))
      return bad("part ", index, ": src ", describe(pair.src), " and dst ",
                 describe(pair.dst), " share bytes in a way that ",
                 EnumNameCollectiveKind(op.kind()), " does not allow");
    for (bool written : {false, true}) {
      const ViewInfo &view = written ? pair.dst : pair.src;
      touches.push_back({view.buffer, view.offset,
                         view.offset + view.reach + view.spanBytes, index,
                         &view, written});
    }
    ++index;
  }
  return checkApart(touches);
}

} // namespace meshwork::plan
