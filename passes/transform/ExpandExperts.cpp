// Experts of a rank as sorted rows and grouped products. The forward and the
// backward pass build the same rows; what one has built the other takes.
#include "dialects/transformer/Facts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_EXPANDEXPERTSPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

/// What is built while this lives belongs where `of` does.
class BuiltFor : public OpBuilder::Listener {
public:
  BuiltFor(OpBuilder &builder, Operation *of) : of(of) {
    builder.setListener(this);
  }
  void notifyOperationInserted(Operation *made,
                               OpBuilder::InsertPoint) override {
    if (made->getBlock() == of->getBlock())
      inheritFacts(of, made);
  }

private:
  Operation *of;
};

/// What has been built of which operands. What stands later in a function may
/// use what stands before.
class Built {
public:
  /// An op, or the equal one that is there.
  template <typename Op, typename... Arguments>
  Op find(OpBuilder &builder, Operation *of, Arguments &&...arguments) {
    auto op = Op::create(builder, of->getLoc(),
                         std::forward<Arguments>(arguments)...);
    for (Operation *known : ops)
      if (known->getBlock() == op->getBlock() && isSame(known, op)) {
        op->erase();
        return cast<Op>(known);
      }
    ops.push_back(op);
    return op;
  }

private:
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

  SmallVector<Operation *> ops;
};

/// The operands that both passes have.
struct Operands {
  Activation function;
  Value input, choices, weights, gate, up, down, first;

  template <typename Op>
  explicit Operands(Op op)
      : function(op.getFunction()), input(op.getInput()),
        choices(op.getChoices()), weights(op.getWeights()), gate(op.getGate()),
        up(op.getUp()), down(op.getDown()), first(op.getFirstExpert()) {}
};

class Expansion {
public:
  Expansion(Operation *op, const Operands &of, Built &built)
      : op(op), of(of), built(built), builder(op), facts(builder, op) {}

  Value forward() {
    sort();
    Value down = product(inner().getResult(0), of.down, widthOf(of.input));
    return combine(down);
  }

  FailureOr<SmallVector<Value>> backward(Value gradient) {
    sort();
    MapOp map = inner();
    Value rows = take(gradient, sorted.getTokens()),
          ofInner = product(rows, of.down, widthOf(of.gate, 1));
    auto through = map.buildGradients(builder, ofInner, {true, true, true});
    if (failed(through))
      return failure();
    Value dgate = (*through)[0], dup = (*through)[1];
    Value dinput = buildSum(builder, op->getLoc(),
                            product(dgate, of.gate, widthOf(of.input)),
                            product(dup, of.up, widthOf(of.input)));
    Value taken = take(of.input, sorted.getTokens());
    return SmallVector<Value>{combine(dinput),
                              take((*through)[2], sorted.getPlaces()),
                              weightGradient(dgate, taken, of.gate),
                              weightGradient(dup, taken, of.up),
                              weightGradient(rows, map.getResult(0), of.down)};
  }

private:
  /// A dim of some tensor.
  struct Dim {
    StringAttr name;
    int64_t size;
  };
  static Dim widthOf(Value value, unsigned dim) {
    return {dimsOf(value).getNames()[dim], tensorType(value).getDimSize(dim)};
  }
  static Dim widthOf(Value value) {
    return widthOf(value, tensorType(value).getRank() - 1);
  }
  RankedTensorType typeOf(ArrayRef<Dim> dims, Type element) {
    SmallVector<int64_t> shape;
    SmallVector<StringAttr> names;
    for (const Dim &dim : dims) {
      shape.push_back(dim.size);
      names.push_back(dim.name);
    }
    return namedType(shape, DimsAttr::get(builder.getContext(), names),
                     element);
  }

  /// A rank's rows: all choices, or as many as its experts can have.
  Dim rows() {
    Dim choices = widthOf(of.choices);
    int64_t tokens = tensorType(of.choices).getNumElements() / choices.size,
            experts = tensorType(of.gate).getDimSize(0);
    return {rowsName(), tokens * std::min(choices.size, experts)};
  }
  /// No name of a dim that rows have.
  StringAttr rowsName() {
    std::string name = "rows";
    auto isTaken = [&](Value value) {
      return dimsOf(value).find(builder.getStringAttr(name)) >= 0;
    };
    while (isTaken(of.gate) || isTaken(of.input))
      name += "_";
    return builder.getStringAttr(name);
  }
  void sort() {
    int64_t experts = tensorType(of.gate).getDimSize(0);
    Type i32 = builder.getI32Type(), order = typeOf({rows()}, i32),
         begins = typeOf({{builder.getStringAttr("begins"), experts + 1}}, i32);
    sorted =
        built.find<SortRowsOp>(builder, op, order, order, of.choices.getType(),
                               begins, of.choices, of.first);
  }
  /// Rows of the last dims of `table` that are no token's.
  Value take(Value table, Value numbers) {
    bool isOfTokens = numbers == sorted.getTokens();
    SmallVector<Dim> dims;
    for (int64_t i = 0; i < tensorType(numbers).getRank(); ++i)
      dims.push_back(widthOf(numbers, i));
    if (isOfTokens)
      dims.push_back(widthOf(table));
    return built.find<TakeRowsOp>(
        builder, op, typeOf(dims, tensorType(table).getElementType()), table,
        numbers);
  }
  Value product(Value lhs, Value matrices, Dim width) {
    Type type = typeOf({rows(), width}, tensorType(lhs).getElementType());
    return built.find<GroupedProductOp>(builder, op, type, lhs, matrices,
                                        sorted.getBegins());
  }
  /// weight * activation(gate) * up, of each row.
  MapOp inner() {
    Value taken = take(of.input, sorted.getTokens()),
          weights = take(of.weights, sorted.getOrder()),
          gate = product(taken, of.gate, widthOf(of.gate, 1)),
          up = product(taken, of.up, widthOf(of.gate, 1));
    return mapOf(gate, up, weights);
  }
  MapOp mapOf(Value gate, Value up, Value weights) {
    Value made =
        buildMap(builder, op->getLoc(), gate.getType(), {gate, up, weights},
                 [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                   Value product = arith::MulFOp::create(
                       b, activated(b, of.function, x[0]), x[1]);
                   return arith::MulFOp::create(b, product, x[2]);
                 });
    return cast<MapOp>(made.getDefiningOp());
  }
  Value combine(Value source) {
    RankedTensorType type =
        withElement(of.input.getType(), tensorType(source).getElementType());
    return built.find<CombineRowsOp>(builder, op, type, source,
                                     sorted.getPlaces(), of.choices);
  }
  Value weightGradient(Value lhs, Value rhs, Value like) {
    return built.find<GroupedGradientOp>(builder, op, like.getType(), lhs, rhs,
                                         sorted.getBegins());
  }

  Operation *op;
  const Operands of;
  Built &built;
  OpBuilder builder;
  BuiltFor facts;
  SortRowsOp sorted;
};

struct ExpandExpertsPass : impl::ExpandExpertsPassBase<ExpandExpertsPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      Built built;
      function.walk([&](Operation *op) {
        if (auto experts = dyn_cast<ExpertsOp>(op))
          replace(op, SmallVector<Value>{
                          Expansion(op, Operands(experts), built).forward()});
        else if (auto grad = dyn_cast<ExpertsGradOp>(op))
          replace(op, Expansion(op, Operands(grad), built)
                          .backward(grad.getGradient()));
      });
    }
  }

  void replace(Operation *op, FailureOr<SmallVector<Value>> values) {
    if (failed(values))
      return signalPassFailure();
    op->replaceAllUsesWith(*values);
    op->erase();
  }
};
} // namespace
} // namespace meshwork::transform
