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

/// The part of `of`, as f32, without its last dims.
static RankedTensorType typeOfFirst(Value of, unsigned numDims, RankPart &part,
                                    Builder builder) {
  auto all = part.typeOf(of, builder.getF32Type());
  auto names = dimsOf(all).getNames().take_front(numDims);
  return namedType(all.getShape().take_front(numDims),
                   DimsAttr::get(builder.getContext(), names),
                   all.getElementType());
}

/// 1 where all `own` are the rank's and nothing of `counted` is negative, else
/// 0.
static Value buildOwnBody(ImplicitLocOpBuilder &b, ArrayRef<OwnElements> own,
                          ValueRange ends, ValueRange counted) {
  auto number = [&](float value) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  };
  Value result = number(1), zero = number(0);
  for (auto [one, end] : llvm::zip_equal(own, ends))
    result = arith::SelectOp::create(b, one.test(b, end), result, zero);
  for (Value value : counted) {
    Value isCounted = arith::CmpIOp::create(
        b, arith::CmpIPredicate::sge, value,
        arith::ConstantOp::create(b, b.getI32IntegerAttr(0)));
    result = arith::SelectOp::create(b, isCounted, result, zero);
  }
  return result;
}

Value buildOwn(Operation *at, Value of, unsigned numDims, RankPart &part,
               ValueRange counted) {
  SmallVector<OwnElements> own;
  for (unsigned i = 0; i < numDims; ++i)
    if (part.isUneven(of, i))
      own.push_back(part.own(of, i));
  if (own.empty() && counted.empty())
    return {};
  auto operands = llvm::map_to_vector(
      own, [](const OwnElements &one) { return one.operand; });
  llvm::append_range(operands, counted);
  OpBuilder builder(at);
  return buildMap(builder, at->getLoc(),
                  typeOfFirst(of, numDims, part, builder), operands,
                  [&](ImplicitLocOpBuilder &b, ValueRange x) {
                    return buildOwnBody(b, own, x.take_front(own.size()),
                                        x.drop_front(own.size()));
                  });
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
  Value targets = op.getTargets();
  SmallVector<Value, 1> counted;
  if (op.getCounted())
    counted.push_back(targets);
  if (Value valid =
          buildOwn(op, targets, tensorType(targets).getRank(), part, counted))
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
static void countPairs(AttentionOpInterface op, RankPart &part) {
  constexpr int64_t rowsDim = 1, headsDim = 2;
  Value q = op.getQ();
  if (part.isSplit(q, rowsDim))
    op.getPositionsMutable().assign(part.positions(q, rowsDim));
  AttentionPart told = op.getPart();
  if (told.random.empty() || !part.isSplit(q, headsDim))
    return;
  int64_t heads = tensorType(q).getDimSize(headsDim);
  op.setTermsAttr(told.terms.with({.totalHeads = heads}));
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
