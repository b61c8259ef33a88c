#include "passes/transform/Routers.h"
#include "dialects/transformer/Dims.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

llvm::SetVector<Operation *> routersOf(func::FuncOp function) {
  llvm::SetVector<Operation *> routers;
  function.walk([&](ExpertsOp op) {
    Value choices = op.getChoices();
    if (LimitChoicesOp limit = limitOf(op))
      choices = limit.getChoices();
    if (Operation *from = choices.getDefiningOp();
        from && from->getNumOperands() > 0)
      routers.insert(from);
  });
  return routers;
}

LimitChoicesOp limitOf(ExpertsOp op) {
  return op.getChoices().getDefiningOp<LimitChoicesOp>();
}

static Value ones(ImplicitLocOpBuilder &b, Type type) {
  return buildMap(b, b.getLoc(), type, {},
                  [](ImplicitLocOpBuilder &i, ValueRange) -> Value {
                    return arith::ConstantOp::create(i, i.getF32FloatAttr(1));
                  });
}

Value chosenBy(ImplicitLocOpBuilder &b, Operation *router, Type scores) {
  Value choices = router->getResult(0);
  Value each = ones(b, withElement(choices.getType(), b.getF32Type()));
  return PickGradOp::create(b, scores, each, choices);
}

static std::string letters(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += static_cast<char>('a' + i);
  return text;
}

/// A product with ones, as dims in the middle are added up by products alone.
Value sumOverTokens(ImplicitLocOpBuilder &b, Value of, bool ofEachSample) {
  auto type = tensorType(of);
  ArrayRef<StringAttr> names = dimsOf(of).getNames();
  std::string rows = letters(names.size() - 1), kept;
  SmallVector<int64_t> shape;
  SmallVector<StringAttr> left;
  for (auto [i, name] : llvm::enumerate(names))
    if ((ofEachSample && name.getValue() == dims::samples) ||
        i + 1 == names.size()) {
      kept += static_cast<char>('a' + i);
      shape.push_back(type.getDimSize(i));
      left.push_back(name);
    }
  DimsAttr dimsOfRows = DimsAttr::get(b.getContext(), names.drop_back());
  Type rowType =
           namedType(type.getShape().drop_back(), dimsOfRows, b.getF32Type()),
       result = namedType(shape, DimsAttr::get(b.getContext(), left),
                          b.getF32Type());
  return ContractOp::create(
      b, result,
      b.getStringAttr(letters(names.size()) + "," + rows + "->" + kept), of,
      ones(b, rowType));
}

/// 1 where a sample is of a group, else 0: [groups, samples].
static Value memberships(ImplicitLocOpBuilder &b, RankedTensorType type) {
  auto size = static_cast<int32_t>(type.getDimSize(1) / type.getDimSize(0));
  return buildMap(
      b, b.getLoc(), type, {},
      [&](ImplicitLocOpBuilder &i, ValueRange) -> Value {
        auto number = [&](int32_t value) {
          return arith::ConstantOp::create(i, i.getI32IntegerAttr(value));
        };
        auto one = [&](float value) {
          return arith::ConstantOp::create(i, i.getF32FloatAttr(value));
        };
        auto along = [&](unsigned dim) {
          return IndexOp::create(i, i.getI32Type(),
                                 dimsOf(type).getNames()[dim]);
        };
        using Predicate = arith::CmpIPredicate;
        Value begin = arith::MulIOp::create(i, along(0), number(size)),
              place = arith::SubIOp::create(i, along(1), begin),
              isBelow =
                  arith::CmpIOp::create(i, Predicate::slt, place, number(size)),
              isIn = arith::CmpIOp::create(i, Predicate::sge, place, number(0));
        Value below = arith::SelectOp::create(i, isBelow, one(1), one(0));
        return arith::SelectOp::create(i, isIn, below, one(0));
      });
}

int64_t countGroups(int64_t samples, int64_t group) {
  return std::max<int64_t>(samples / group, 1);
}

/// A product, so that ranks may share a group.
Value sumOfGroups(ImplicitLocOpBuilder &b, Value of, int64_t group) {
  auto type = tensorType(of);
  int64_t groups = countGroups(type.getDimSize(0), group);
  if (type.getDimSize(0) == groups)
    return of;
  StringAttr sample = dimsOf(of).getNames()[0],
             name = b.getStringAttr("groups");
  auto typeOf = [&](int64_t size, StringAttr other) {
    return namedType(
        {groups, size},
        DimsAttr::get(b.getContext(), ArrayRef<StringAttr>{name, other}),
        b.getF32Type());
  };
  return ContractOp::create(
      b, typeOf(type.getDimSize(1), dimsOf(of).getNames()[1]),
      b.getStringAttr("ab,bc->ac"),
      memberships(b, typeOf(type.getDimSize(0), sample)), of);
}

} // namespace meshwork::transform
