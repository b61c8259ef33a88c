#include "passes/partition/ReshardSteps.h"

#include "dialects/transformer/Facts.h"
#include "passes/sharding/Shardings.h"

using namespace mlir;

namespace meshwork::partition {
using namespace transformer;
using namespace sharding;
struct ReshardSteps::Parts {
  int64_t dim, count;
  DimLayout order;
  int64_t storedSize(RankedTensorType whole) const {
    return count * ranksOf(whole.getDimSize(dim), 0).first;
  }
  /// The length of a part, and what part `index` holds.
  std::pair<int64_t, std::vector<layout::Range>> ranksOf(int64_t size,
                                                         int64_t index) const {
    layout::Cut cut{count, index, order};
    return {layout::storedSize(size, {&cut, 1}),
            layout::ranges(size, {&cut, 1})};
  }
};

static RankedTensorType ofSize(RankedTensorType type, int64_t dim,
                               int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return RankedTensorType::get(shape, type.getElementType(),
                               type.getEncoding());
}

/// One step, with the change of order that leaving or entering a layout takes
/// beside the collective.
Value ReshardSteps::build(mesh::ReshardOp op, Value input, const Step &step,
                          RankedTensorType type) {
  builder.setInsertionPoint(op);
  Operation *before = op->getPrevNode();
  int64_t ranks = mesh.numRanks(step.axes);
  Value value = input;
  if (DimLayout layout = step.layoutEntered(); layout != DimLayout::block) {
    Parts parts{step.toDim >= 0 ? step.toDim : step.dim, ranks, layout};
    auto whole = tensorType(value);
    value = reordered(op, value, parts,
                      ofSize(whole, parts.dim, parts.storedSize(whole)), true);
  }
  if (DimLayout layout = step.layoutLeft(); layout != DimLayout::block) {
    Parts parts{step.dim, ranks, layout};
    auto stored = ofSize(type, parts.dim, parts.storedSize(type));
    value =
        reordered(op, collective(op, value, step, stored), parts, type, false);
  } else {
    value = collective(op, value, step, type);
  }
  inheritFactsSince(before, op);
  return value;
}

/// Brings a dim from its own order into that of the ranks' parts, or back.
/// What is behind a part's elements is zero.
Value ReshardSteps::reordered(mesh::ReshardOp op, Value input,
                              const Parts &parts, RankedTensorType result,
                              bool toParts) {
  auto from = tensorType(input);
  StringAttr name = dimsOf(from).getNames()[parts.dim];
  int64_t size = (toParts ? from : result).getDimSize(parts.dim);
  struct Piece {
    int64_t to, from, count;
  };
  std::vector<Piece> order;
  for (int64_t i = 0; i < parts.count; ++i) {
    auto [length, held] = parts.ranksOf(size, i);
    for (const layout::Range &range : held) {
      int64_t stored = i * length + range.offset;
      if (range.count != 0)
        order.push_back({toParts ? stored : range.begin,
                         toParts ? range.begin : stored, range.count});
    }
  }
  llvm::sort(order, [](const Piece &a, const Piece &b) { return a.to < b.to; });
  SmallVector<Value> pieces;
  SmallVector<int64_t> places;
  for (const Piece &piece : order) {
    pieces.push_back(transformer::SliceOp::create(
        builder, op.getLoc(), ofSize(from, parts.dim, piece.count), input, name,
        builder.getI64IntegerAttr(piece.from)));
    places.push_back(piece.to);
  }
  return UnsliceOp::create(builder, op.getLoc(), result, pieces, name,
                           builder.getDenseI64ArrayAttr(places));
}

Value ReshardSteps::collective(mesh::ReshardOp op, Value input,
                               const Step &step, RankedTensorType type) {
  ArrayAttr axes = axesAttr(attr, step.axes);
  auto reduction = mesh::ReductionAttr::get(
      attr.getContext(), step.before.reduction == sharding::Reduction::max
                             ? mesh::Reduction::max
                             : mesh::Reduction::sum);
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  Location loc = op.getLoc();
  mesh::CauseAttr cause = op.getCause();
  switch (step.kind) {
  case Step::Kind::allReduce:
    return mesh::AllReduceOp::create(builder, loc, type, input, reduction, axes,
                                     cause);
  case Step::Kind::reduceScatter:
    return mesh::ReduceScatterOp::create(builder, loc, type, input, reduction,
                                         number(step.dim), axes, cause);
  case Step::Kind::allGather:
    return mesh::AllGatherOp::create(builder, loc, type, input,
                                     number(step.dim), axes, cause);
  case Step::Kind::allToAll:
    return mesh::AllToAllOp::create(builder, loc, type, input, number(step.dim),
                                    number(step.toDim), axes, cause);
  case Step::Kind::slice:
    return mesh::SliceOp::create(builder, loc, type, input, number(step.dim),
                                 axes, cause);
  case Step::Kind::permute:
    return mesh::PermuteOp::create(
        builder, loc, type, input,
        builder.getDenseI64ArrayAttr(sourcesOf(step)), axes, cause);
  }
  llvm_unreachable("all kinds are handled");
}

/// By index in the group, seen from the group of rank 0: all are alike.
SmallVector<int64_t> ReshardSteps::sourcesOf(const Step &step) const {
  SmallVector<int64_t> sources;
  for (int64_t i = 0, n = mesh.numRanks(step.axes); i < n; ++i)
    sources.push_back(mesh.index(
        permuteSource(mesh, step, mesh.withIndex(0, step.axes, i)), step.axes));
  return sources;
}

} // namespace meshwork::partition
