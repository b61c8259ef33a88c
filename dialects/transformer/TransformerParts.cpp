// What ops count in the whole where a rank has a part.
#include "dialects/transformer/Dims.h"

using namespace mlir;
namespace meshwork::transformer {

Value OwnElements::test(ImplicitLocOpBuilder &b, Value value) const {
  if (!isTable)
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                 IndexOp::create(b, b.getI32Type(), dim),
                                 value);
  Value zero = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::sge, value, zero);
}

void EmbeddingOp::tellPart(RankPart &part) {
  if (part.isSplit(getTable(), 0))
    getFirstRowMutable().assign(part.first(getTable(), 0));
}

void EmbeddingGradOp::tellPart(RankPart &part) {
  if (part.isSplit(getResult(), 0))
    getFirstRowMutable().assign(part.first(getResult(), 0));
}

/// Of a rank's own rows.
void RotaryTableOp::tellPart(RankPart &part) {
  if (part.isSplit(getCosine(), 0))
    getPositionsMutable().assign(part.positions(getCosine(), 0));
}

//===-- The head ------------------------------------------------------------//

/// One for each token that counts, zero for padding of a split dim and, where
/// they are told so, for tokens without a target.
static void countTokens(HeadLossGradOp op, RankPart &part) {
  SmallVector<OwnElements> own;
  for (unsigned i = 0; i < dimsOf(op.getTargets()).getNames().size(); ++i)
    if (part.isUneven(op.getTargets(), i))
      own.push_back(part.own(op.getTargets(), i));
  if (own.empty() && !op.getCounted())
    return;
  auto ends = llvm::map_to_vector(
      own, [](const OwnElements &one) { return one.operand; });
  if (op.getCounted())
    ends.push_back(op.getTargets());
  OpBuilder builder(op);
  Value valid = buildMap(
      builder, op.getLoc(), part.typeOf(op.getTargets(), builder.getF32Type()),
      ends, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
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

void HeadLossGradOp::tellPart(RankPart &part) {
  countTokens(*this, part);
  if (!part.isSplit(getWeight(), 0))
    return;
  setVocabulary(tensorType(getWeight()).getDimSize(0));
  setVocabAxesAttr(part.axesOf(getWeight(), 0));
  if (part.isUneven(getWeight(), 0))
    getRowsMutable().assign(part.extent(getWeight(), 0));
  getFirstRowMutable().assign(part.first(getWeight(), 0));
}

//===-- Attention -----------------------------------------------------------//

/// Which queries and heads of the whole a rank has.
template <typename Op> static void countPairs(Op op, RankPart &part) {
  constexpr int64_t rowsDim = 1, headsDim = 2;
  Value q = op.getQ();
  if (part.isSplit(q, rowsDim))
    op.getPositionsMutable().assign(part.positions(q, rowsDim));
  if (op.getRandom().empty() || !part.isSplit(q, headsDim))
    return;
  op.setTotalHeads(tensorType(q).getDimSize(headsDim));
  op.getRandomMutable().append(part.first(q, headsDim));
}

void AttentionOp::tellPart(RankPart &part) { countPairs(*this, part); }

void AttentionGradOp::tellPart(RankPart &part) {
  setDuplicated(!part.isUnique(getQ()));
  countPairs(*this, part);
}

//===-- Draws ---------------------------------------------------------------//

/// How much further along a dim of the whole than of the part an element of
/// the map is: the part's beginning, or its own.
static Value offsetOfElement(MapOp map, RankPart &part, unsigned dim) {
  Value space = map.getResult(0);
  OpBuilder builder(map);
  bool isBlock = part.isBlock(space, dim);
  map.getInputsMutable().append(isBlock ? part.first(space, dim)
                                        : part.positions(space, dim));
  Value argument =
      map.getBody().addArgument(builder.getI32Type(), map.getLoc());
  if (isBlock)
    return argument;
  auto inBody =
      ImplicitLocOpBuilder::atBlockBegin(map.getLoc(), &map.getBody().front());
  return arith::SubIOp::create(inBody, argument,
                               IndexOp::create(inBody, builder.getI32Type(),
                                               dimsOf(space).getNames()[dim]));
}

/// What draws counts positions in the whole tensor; along `batch` its first
/// sample does that already.
void MapOp::tellPart(RankPart &part) {
  SmallVector<DrawOpInterface> draws;
  getBody().walk([&](DrawOpInterface op) { draws.push_back(op); });
  if (draws.empty())
    return;
  Value space = getResult(0);
  SmallVector<Attribute> dims;
  SmallVector<Value> inner;
  for (auto [i, name] : llvm::enumerate(dimsOf(space).getNames())) {
    if (name == dims::samples || !part.isSplit(space, i))
      continue;
    dims.push_back(name);
    inner.push_back(offsetOfElement(*this, part, i));
  }
  if (dims.empty())
    return;
  Builder builder(getContext());
  for (DrawOpInterface op : draws) {
    op.getOffsetsMutable().assign(inner);
    op.setDimsAttr(builder.getArrayAttr(dims));
    op.setSpaceAttr(builder.getDenseI64ArrayAttr(tensorType(space).getShape()));
  }
}

} // namespace meshwork::transformer
