#include "passes/transform/ExpertRows.h"

#include "dialects/transformer/Facts.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/analysis/CopiedParameter.h"
#include "passes/transform/Rounding.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

/// Of what stands in a function or in turns: what a map holds is no op of a
/// step.
void BuiltFor::notifyOperationInserted(Operation *made,
                                       OpBuilder::InsertPoint) {
  if (isa_and_nonnull<FunctionOpInterface, RepeatOp>(made->getParentOp()))
    inheritFacts(of, made);
}

/// Each pass has asked for the rank's place by an op of its own.
static bool isSame(Operation *a, Operation *b) {
  return OperationEquivalence::isEquivalentTo(
      a, b,
      [](Value x, Value y) {
        Operation *one = x.getDefiningOp(), *other = y.getDefiningOp();
        bool isSource = one && other && one->getNumOperands() == 0;
        return success(x == y || (isSource && isMemoryEffectFree(one) &&
                                  isSame(one, other)));
      },
      /*markEquivalent=*/nullptr,
      OperationEquivalence::IgnoreLocations |
          OperationEquivalence::IgnoreDiscardableAttrs);
}

Operation *BuiltRows::known(Operation *op) {
  for (Operation *other : ops)
    if (other->getBlock() == op->getBlock() && isSame(other, op)) {
      op->erase();
      return other;
    }
  ops.push_back(op);
  return op;
}

/// Which of the scales.
namespace {
enum RowScale : unsigned { ofInner, ofGate, ofUp };
} // namespace

SmallVector<Value> ExpertRows::forward() {
  sort();
  Value rows = inner().getResult(0),
        down = product(rounded(rows, ofInner), of.down, widthOf(of.input));
  SmallVector<Value> made = {combine(down)};
  if (!of.rowScales.empty())
    made.push_back(largestMagnitude(builder, rows));
  return made;
}

FailureOr<SmallVector<Value>> ExpertRows::backward(Value gradient) {
  sort();
  MapOp map = inner();
  Value rows = take(gradient, sorted.getTokens()),
        dinner = product(rows, of.down, widthOf(of.gate, 1));
  auto through = map.buildGradients(builder, dinner, {true, true, true});
  if (failed(through))
    return failure();
  Value dgate = rounded((*through)[0], ofGate),
        dup = rounded((*through)[1], ofUp);
  Value dinput = buildSum(builder, op->getLoc(),
                          product(dgate, of.gate, widthOf(of.input)),
                          product(dup, of.up, widthOf(of.input)));
  Value taken = take(of.input, sorted.getTokens()),
        before = rounded(map.getResult(0), ofInner);
  SmallVector<Value> made = {
      combine(dinput), take((*through)[2], sorted.getPlaces()),
      weightGradient(dgate, taken, of.gate), weightGradient(dup, taken, of.up),
      weightGradient(rows, before, of.down)};
  if (!of.rowScales.empty())
    for (Value gradient : ArrayRef(*through).take_front(2))
      made.push_back(largestMagnitude(builder, gradient));
  return made;
}

Value ExpertRows::rounded(Value rows, unsigned scale) {
  if (of.rowScales.empty())
    return rows;
  Value by = of.rowScales[scale];
  Value inverse =
      buildMap(builder, op->getLoc(), by.getType(), by,
               [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                 Value one = arith::ConstantOp::create(b, b.getF32FloatAttr(1));
                 return arith::DivFOp::create(b, one, x[0]);
               });
  Type format = scale == ofInner ? Type(builder.getType<Float8E4M3FNType>())
                                 : Type(builder.getType<Float8E5M2Type>());
  return scaledBack(builder,
                    scaledTo8(builder, rows, by, format, Infinity::becomesNan),
                    inverse, tensorType(rows).getElementType());
}

ExpertRows::Dim ExpertRows::widthOf(Value value, unsigned dim) {
  return {dimsOf(value).getNames()[dim], tensorType(value).getDimSize(dim)};
}

ExpertRows::Dim ExpertRows::widthOf(Value value) {
  return widthOf(value, tensorType(value).getRank() - 1);
}

RankedTensorType ExpertRows::typeOf(ArrayRef<Dim> dims, Type element) {
  SmallVector<int64_t> shape;
  SmallVector<StringAttr> names;
  for (const Dim &dim : dims) {
    shape.push_back(dim.size);
    names.push_back(dim.name);
  }
  return namedType(shape, DimsAttr::get(builder.getContext(), names), element);
}

/// A rank's rows: all choices, or as many as its experts can have.
ExpertRows::Dim ExpertRows::rows() {
  Dim choices = widthOf(of.choices);
  int64_t tokens = tensorType(of.choices).getNumElements() / choices.size,
          experts = tensorType(of.gate).getDimSize(0),
          all = tokens * std::min(choices.size, experts);
  return {rowsName(), std::min(all, of.most.value_or(all))};
}

IntegerAttr ExpertRows::about() {
  return of.about < rows().size ? builder.getI64IntegerAttr(of.about)
                                : IntegerAttr();
}

IntegerAttr ExpertRows::most() {
  return of.most ? builder.getI64IntegerAttr(*of.most) : IntegerAttr();
}

/// No name of a dim that rows have.
StringAttr ExpertRows::rowsName() {
  std::string name = "rows";
  auto isTaken = [&](Value value) {
    return dimsOf(value).find(builder.getStringAttr(name)) >= 0;
  };
  while (isTaken(of.gate) || isTaken(of.input))
    name += "_";
  return builder.getStringAttr(name);
}

void ExpertRows::sort() {
  int64_t experts = tensorType(of.gate).getDimSize(0);
  Type i32 = builder.getI32Type(), order = typeOf({rows()}, i32),
       begins = typeOf({{builder.getStringAttr("begins"), experts + 1}}, i32);
  sorted = built.find<SortRowsOp>(builder, op->getLoc(), order, order,
                                  of.choices.getType(), begins, of.choices,
                                  of.first, most());
}

/// Rows of the last dims of `table` that are no token's.
Value ExpertRows::take(Value table, Value numbers) {
  bool isOfTokens = numbers == sorted.getTokens();
  SmallVector<Dim> dims;
  for (int64_t i = 0; i < tensorType(numbers).getRank(); ++i)
    dims.push_back(widthOf(numbers, i));
  if (isOfTokens)
    dims.push_back(widthOf(table));
  return built.find<TakeRowsOp>(
      builder, op->getLoc(), typeOf(dims, tensorType(table).getElementType()),
      table, numbers);
}

Value ExpertRows::product(Value lhs, Value matrices, Dim width) {
  Type type = typeOf({rows(), width}, tensorType(lhs).getElementType());
  auto made = built.find<GroupedProductOp>(
      builder, op->getLoc(), type, lhs, matrices, sorted.getBegins(), about());
  // Now, as fusion hides what the copy was made by.
  if (StringAttr weight = analysis::copiedParameter(matrices))
    made->setDiscardableAttr(facts::parameter, weight);
  return made;
}

/// weight * activation(gate) * up, of each row.
MapOp ExpertRows::inner() {
  Value taken = take(of.input, sorted.getTokens()),
        weights = take(of.weights, sorted.getOrder()),
        gate = product(taken, of.gate, widthOf(of.gate, 1)),
        up = product(taken, of.up, widthOf(of.gate, 1));
  return mapOf(gate, up, weights);
}

MapOp ExpertRows::mapOf(Value gate, Value up, Value weights) {
  Value made =
      buildMap(builder, op->getLoc(), gate.getType(), {gate, up, weights},
               [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                 Value product = arith::MulFOp::create(
                     b, activated(b, of.function, x[0]), x[1]);
                 return arith::MulFOp::create(b, product, x[2]);
               });
  return cast<MapOp>(made.getDefiningOp());
}

Value ExpertRows::combine(Value source) {
  RankedTensorType type =
      withElement(of.input.getType(), tensorType(source).getElementType());
  return built.find<CombineRowsOp>(builder, op->getLoc(), type, source,
                                   sorted.getPlaces(), of.choices);
}

Value ExpertRows::weightGradient(Value lhs, Value rhs, Value like) {
  return built.find<GroupedGradientOp>(builder, op->getLoc(), like.getType(),
                                       lhs, rhs, sorted.getBegins(), about());
}

} // namespace meshwork::transform
