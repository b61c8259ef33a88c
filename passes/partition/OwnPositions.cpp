#include "passes/partition/OwnPositions.h"

#include "dialects/transformer/Facts.h"
#include "passes/sharding/Ulysses.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace meshwork::partition {
using namespace transformer;
using namespace sharding;

/// Where this rank's block of `value`'s dim begins, as a scalar tensor.
Value OwnPositions::offsetOf(Operation *at, Value value, int64_t dim) {
  Axes axes = shardingOf(attr, value).dims[dim];
  builder.setInsertionPoint(at);
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  return mesh::CoordinateOp::create(builder, at->getLoc(), scalar,
                                    axesAttr(attr, axes),
                                    tensorType(value).getDimSize(dim));
}

template <typename Op> void OwnPositions::setFirstRow(Op op, Value table) {
  if (!shardingOf(attr, table).dims[0].empty())
    op.getFirstRowMutable().assign(offsetOf(op, table, 0));
}

/// Of a rank's own rows.
void OwnPositions::setPositions(RotaryTableOp op) {
  auto whole = tensorType(op.getCosine());
  Axes axes = shardingOf(attr, op.getCosine()).dims[0];
  if (!axes.empty())
    op.getPositionsMutable().assign(masks.positions(
        op, whole.getDimSize(0), axes, dimsOf(whole).getNames()[0]));
}

void OwnPositions::splitHead(HeadLossGradOp op) {
  countTokens(op);
  Axes axes = shardingOf(attr, op.getWeight()).dims[0];
  if (axes.empty())
    return;
  int64_t rows = tensorType(op.getWeight()).getDimSize(0);
  op.setVocabulary(rows);
  op.setVocabAxesAttr(axesAttr(attr, axes));
  if (masks.isUneven(rows, axes))
    op.getRowsMutable().assign(masks.extent(op, rows, axes));
  setFirstRow(op, op.getWeight());
}

/// One for each token that counts, zero for padding of a split dim and, where
/// they are told so, for tokens without a target.
void OwnPositions::countTokens(HeadLossGradOp op) {
  auto whole = tensorType(op.getTargets());
  Sharding sharding = shardingOf(attr, op.getTargets());
  SmallVector<Masks::Own> own;
  for (auto [i, name] : llvm::enumerate(dimsOf(whole).getNames()))
    if (masks.isUneven(whole.getDimSize(i), sharding.dims[i]))
      own.push_back(masks.own(op, whole.getDimSize(i), sharding.dims[i], name));
  if (own.empty() && !op.getCounted())
    return;
  auto ends = llvm::map_to_vector(
      own, [](const Masks::Own &one) { return one.operand; });
  if (op.getCounted())
    ends.push_back(op.getTargets());
  builder.setInsertionPoint(op);
  Type type =
      localType(mesh, withElement(whole, builder.getF32Type()), sharding);
  Value valid = buildMap(
      builder, op.getLoc(), type, ends,
      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
        auto number = [&](float value) {
          return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
        };
        Value result = number(1), zero = number(0);
        for (auto [one, end] : llvm::zip(own, x))
          result = arith::SelectOp::create(b, one.test(b, end), result, zero);
        if (!op.getCounted())
          return result;
        Value hasTarget = arith::CmpIOp::create(
            b, arith::CmpIPredicate::sge, x.back(),
            arith::ConstantOp::create(b, b.getI32IntegerAttr(0)));
        return arith::SelectOp::create(b, hasTarget, result, zero);
      });
  op.getValidMutable().assign(valid);
}

/// No two ranks have the same part of `value`.
bool OwnPositions::isSplitOverAll(Value value) const {
  int64_t parts = 1;
  for (const Axes &axes : shardingOf(attr, value).dims)
    parts *= mesh.numRanks(axes);
  return parts == mesh.numRanks();
}

/// Which queries and heads of the whole a rank has.
template <typename Op> void OwnPositions::countPairs(Op op) {
  constexpr int64_t rowsDim = 1, headsDim = 2;
  auto whole = tensorType(op.getQ());
  if (Axes axes = shardingOf(attr, op.getQ()).dims[rowsDim]; !axes.empty()) {
    if (sharingOf(op) == Sharing::ring)
      rings[op] = {axes, whole.getDimSize(rowsDim)};
    op.getPositionsMutable().assign(
        masks.positions(op, whole.getDimSize(rowsDim), axes,
                        dimsOf(whole).getNames()[rowsDim]));
  }
  if (op.getRandom().empty() ||
      shardingOf(attr, op.getQ()).dims[headsDim].empty())
    return;
  op.setTotalHeads(whole.getDimSize(headsDim));
  op.getRandomMutable().append(offsetOf(op, op.getQ(), headsDim));
}

/// What draws counts positions in the whole tensor; along `batch` its first
/// sample does that already.
void OwnPositions::countDraws(MapOp map) {
  SmallVector<DrawOpInterface> draws;
  map.getBody().walk([&](DrawOpInterface op) { draws.push_back(op); });
  if (draws.empty())
    return;
  Value space = map.getResult(0);
  SmallVector<Attribute> dims;
  SmallVector<Value> inner;
  for (auto [i, name] : llvm::enumerate(dimsOf(space).getNames())) {
    if (name == "batch" || shardingOf(attr, space).dims[i].empty())
      continue;
    dims.push_back(name);
    inner.push_back(offsetOfElement(map, space, i));
  }
  if (dims.empty())
    return;
  for (DrawOpInterface op : draws) {
    op.getOffsetsMutable().assign(inner);
    op.setDimsAttr(builder.getArrayAttr(dims));
    op.setSpaceAttr(builder.getDenseI64ArrayAttr(tensorType(space).getShape()));
  }
}

/// How much further along a dim of the whole than of the part an element of
/// the map is: the part's beginning, or its own.
Value OwnPositions::offsetOfElement(MapOp map, Value space, int64_t dim) {
  const Axes axes = shardingOf(attr, space).dims[dim];
  StringAttr name = dimsOf(space).getNames()[dim];
  bool isBlock = onlyBlocks(axes);
  map.getInputsMutable().append(
      isBlock ? offsetOf(map, space, dim)
              : masks.positions(map, tensorType(space).getDimSize(dim), axes,
                                name));
  Value argument =
      map.getBody().addArgument(builder.getI32Type(), map.getLoc());
  if (isBlock)
    return argument;
  auto inBody =
      ImplicitLocOpBuilder::atBlockBegin(map.getLoc(), &map.getBody().front());
  return arith::SubIOp::create(
      inBody, argument, IndexOp::create(inBody, builder.getI32Type(), name));
}

void OwnPositions::count(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](EmbeddingOp op) { setFirstRow(op, op.getTable()); })
      .Case([&](EmbeddingGradOp op) { setFirstRow(op, op.getResult()); })
      .Case([&](HeadLossGradOp op) { splitHead(op); })
      .Case([&](RotaryTableOp op) { setPositions(op); })
      .Case([&](transformer::AttentionOp op) { countPairs(op); })
      .Case([&](transformer::AttentionGradOp op) {
        op.setDuplicated(!isSplitOverAll(op.getQ()));
        countPairs(op);
      })
      .Case([&](MapOp op) { countDraws(op); });
}

} // namespace meshwork::partition
