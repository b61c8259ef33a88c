// Each collective alone: its parts have the shapes of its kind and share no
// bytes but where Plan.fbs says so.
#include "lib/Plan/Overlap.h"
#include "lib/Plan/PlanCheckInternal.h"
#include "meshwork/Plan/Frame.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
using Kind = plan::CollectiveKind;

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter;
}

/// One collective while its parts are looked at.
struct Site {
  const ProgramCheck &check;
  const plan::Collective &op;
  int64_t ranks; // of a group
};

struct Pair {
  const ViewInfo &src, &dst;
  const plan::Transfer &part;
};

int64_t blockSize(int64_t size, int64_t ranks) {
  return (size - 1) / ranks + 1;
}

absl::Status checkDim(int32_t dim, const char *field, const ViewInfo &view) {
  if (dim >= 0 && static_cast<size_t>(dim) < view.shape.size())
    return absl::OkStatus();
  return bad(field, " is ", dim, ", src is ", describe(view));
}

/// `block` is `whole`, but for `dim`, which has the size of a block of it.
absl::Status expectBlock(const Site &site, const ViewInfo &block,
                         const ViewInfo &whole, size_t dim) {
  std::vector<int64_t> shape(whole.shape.begin(), whole.shape.end());
  shape[dim] = blockSize(shape[dim], site.ranks);
  if (block.shape == absl::MakeSpan(shape))
    return absl::OkStatus();
  ViewInfo expected = block;
  expected.shape = shape;
  return bad("one block is ", describe(block), ", expected ",
             describe(expected), ", 1/", site.ranks, " of dim ", dim, " of ",
             describe(whole));
}

absl::Status checkAllToAll(const Site &site, const Pair &pair) {
  MESHWORK_RETURN_IF_ERROR(checkDim(pair.part.to_dim(), "to_dim", pair.src));
  size_t dim = static_cast<size_t>(pair.part.dim());
  size_t toDim = static_cast<size_t>(pair.part.to_dim());
  if (dim == toDim) {
    if (pair.src.shape == pair.dst.shape &&
        pair.src.shape[dim] % site.ranks == 0)
      return absl::OkStatus();
    return bad("src is ", describe(pair.src), ", dst ", describe(pair.dst),
               ", expected one shape that ", site.ranks, " divides in dim ",
               dim);
  }
  // What both would be with each split undone.
  std::vector<int64_t> whole(pair.src.shape.begin(), pair.src.shape.end());
  whole[dim] = pair.dst.shape[dim];
  ViewInfo both = pair.src;
  both.shape = whole;
  MESHWORK_RETURN_IF_ERROR(expectBlock(site, pair.src, both, dim));
  return expectBlock(site, pair.dst, both, toDim);
}

absl::Status checkShapes(const Site &site, const Pair &pair) {
  Kind kind = site.op.kind();
  if (pair.src.dtype != pair.dst.dtype)
    return bad("src is ", describe(pair.src), ", dst ", describe(pair.dst),
               ", expected one element type");
  if (reduces(kind) && !plan::isWideFloat(pair.src.dtype))
    return bad("integers cannot be reduced");
  if (pair.src.shape.size() != pair.dst.shape.size())
    return bad("src is ", describe(pair.src), ", dst ", describe(pair.dst),
               ", expected as many dims");
  if (kind != Kind::all_to_all && pair.part.to_dim() != 0)
    return bad("to_dim is ", pair.part.to_dim(), ", only all_to_all has one");
  if (kind == Kind::all_reduce || kind == Kind::permute) {
    if (pair.part.dim() != 0)
      return bad("dim is ", pair.part.dim(), ", this kind has none");
    return expectView(pair.dst, "dst", pair.src.dtype, pair.src.shape);
  }
  MESHWORK_RETURN_IF_ERROR(checkDim(pair.part.dim(), "dim", pair.src));
  size_t dim = static_cast<size_t>(pair.part.dim());
  if (kind == Kind::all_gather)
    return expectBlock(site, pair.src, pair.dst, dim);
  if (kind == Kind::reduce_scatter)
    return expectBlock(site, pair.dst, pair.src, dim);
  return checkAllToAll(site, pair);
}

/// `block` is the part of `whole` that belongs to the rank itself.
bool isOwnBlock(const Site &site, const ViewInfo &whole, const ViewInfo &block,
                size_t dim) {
  uint32_t before = whole.shifts ? whole.shifts->size() : 0;
  if (whole.buffer != block.buffer || whole.offset != block.offset ||
      whole.strides != block.strides || !block.shifts ||
      block.shifts->size() != before + 1 || !advanceAlike(whole, block))
    return false;
  for (uint32_t i = 0; i <= before; ++i) {
    const plan::Shift &found = *block.shifts->Get(i);
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
struct Touch {
  uint32_t buffer;
  uint64_t begin, end;
  uint32_t part;
  const ViewInfo *view;
  bool written;
};

/// No part writes what another one touches.
absl::Status checkApart(std::vector<Touch> &touches) {
  std::sort(touches.begin(), touches.end(), [](auto &a, auto &b) {
    return std::tie(a.buffer, a.begin) < std::tie(b.buffer, b.begin);
  });
  for (size_t i = 0; i < touches.size(); ++i)
    for (size_t k = i + 1;
         k < touches.size() && touches[k].buffer == touches[i].buffer &&
         touches[k].begin < touches[i].end;
         ++k) {
      const Touch &a = touches[i], &b = touches[k];
      if (a.part != b.part && (a.written || b.written) &&
          mayShareBytes(*a.view, *b.view))
        return bad("parts ", std::min(a.part, b.part), " and ",
                   std::max(a.part, b.part),
                   " share bytes that one of them writes");
    }
  return absl::OkStatus();
}

absl::Status checkParts(const Site &site) {
  std::vector<Touch> touches;
  uint32_t index = 0;
  for (const plan::Transfer *part : *site.op.parts()) {
    Pair pair{site.check.views[part->src()], site.check.views[part->dst()],
              *part};
    absl::Status status = checkShapes(site, pair);
    if (status.ok() && mayShareBytes(pair.src, pair.dst) &&
        !mayAlias(site, pair))
      status =
          bad("src ", describe(pair.src), " and dst ", describe(pair.dst),
              " share bytes in a way that ",
              plan::EnumNameCollectiveKind(site.op.kind()), " does not allow");
    if (!status.ok())
      return bad("part ", index, ": ", status.message());
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

absl::Status checkSources(const Site &site) {
  uint32_t count = orEmpty(site.op.sources()).size();
  if (site.op.kind() != Kind::permute)
    return count == 0 ? absl::OkStatus()
                      : bad("only permute has sources, it has ", count);
  if (count != site.ranks)
    return bad("permute has ", count, " sources for groups of ", site.ranks);
  for (uint32_t source : *site.op.sources())
    if (source >= site.ranks && source != plan::noSource)
      return bad("permute has the source ", source, " in groups of ",
                 site.ranks);
  return absl::OkStatus();
}
} // namespace

absl::Status checkCollective(const ProgramCheck &check,
                             const plan::Collective &op) {
  if (op.kind() > Kind::MAX || op.reduction() > plan::Reduction::MAX ||
      op.pass() > plan::Pass::MAX)
    return bad("unknown collective ", static_cast<int>(op.kind()),
               " or reduction ", static_cast<int>(op.reduction()));
  if (!reduces(op.kind()) && op.reduction() != plan::Reduction::sum)
    return bad(plan::EnumNameCollectiveKind(op.kind()), " reduces nothing");
  if (op.any_order() &&
      (!reduces(op.kind()) || op.reduction() != plan::Reduction::sum))
    return bad(plan::EnumNameCollectiveKind(op.kind()), " with ",
               plan::EnumNameReduction(op.reduction()),
               " in any order, expected the sum of an all_reduce or a "
               "reduce_scatter");
  if (!op.axes() || op.axes()->size() == 0 || !op.parts() ||
      op.parts()->size() == 0)
    return bad("a collective needs an axis and a part");
  if (op.channel() > maxChannels)
    return bad("channel ", op.channel(), ", expected at most ", maxChannels);
  MESHWORK_RETURN_IF_ERROR(checkAxes(check.plan, op.axes()));
  Site site{check, op, static_cast<int64_t>(groupSize(check.plan, op.axes()))};
  MESHWORK_RETURN_IF_ERROR(checkSources(site));
  return checkParts(site);
}

} // namespace meshwork::runtime
