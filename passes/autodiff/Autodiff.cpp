// Reverse-mode differentiation of @loss, op by op from the last to the first.
// A parameter's gradient is accumulated where each part of it appears, so that
// none is kept longer than needed.
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/HeadGradient.h"
#include "dialects/transformer/StepFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/FoldedLayers.h"
#include "passes/autodiff/Passes.h"

using namespace mlir;
namespace meshwork::autodiff {
#define GEN_PASS_DEF_AUTODIFFPASS
#include "passes/autodiff/Passes.h.inc"
namespace {
using namespace transformer;

/// Two parts of one sliced tensor set side by side, if they are that.
Value mergeUnslices(OpBuilder &builder, Value a, Value b) {
  auto first = a.getDefiningOp<UnsliceOp>(),
       second = b.getDefiningOp<UnsliceOp>();
  if (!first || !second || first.getDim() != second.getDim() ||
      first.getType() != second.getType())
    return {};
  SmallVector<std::pair<int64_t, Value>> parts;
  for (UnsliceOp op : {first, second})
    for (auto [offset, part] : llvm::zip_equal(op.getOffsets(), op.getParts()))
      parts.emplace_back(offset, part);
  llvm::sort(parts, llvm::less_first());
  int64_t end = 0,
          position = dimsOf(first.getResult()).find(first.getDimAttr());
  for (auto [offset, part] : parts) {
    if (offset < end)
      return {}; // They overlap: a sum is needed.
    bool drops =
        tensorType(part).getRank() < tensorType(first.getResult()).getRank();
    end = offset + (drops ? 1 : tensorType(part).getDimSize(position));
  }
  auto offsets = llvm::to_vector(llvm::make_first_range(parts));
  auto values = llvm::to_vector(llvm::make_second_range(parts));
  return UnsliceOp::create(builder, first.getLoc(), first.getType(), values,
                           first.getDimAttr(),
                           builder.getDenseI64ArrayAttr(offsets));
}

class Differentiation {
public:
  explicit Differentiation(func::FuncOp function)
      : function(function), builder(function.getContext()) {}

  LogicalResult run() {
    auto terminator =
        cast<func::ReturnOp>(function.getBody().front().getTerminator());
    Value loss = terminator.getOperand(0);
    findActive();
    builder.setInsertionPoint(terminator);
    gradients[loss] = number(loss, builder.getF32FloatAttr(1));
    takeAuxiliaryLosses();
    SmallVector<Operation *> forward;
    for (Operation &op : function.getBody().front().without_terminator())
      forward.push_back(&op);
    for (Operation *op : llvm::reverse(forward))
      if (failed(visit(op)))
        return failure();
    // The others have no gradient, but are part of the loss.
    for (auto head : llvm::make_early_inc_range(function.getOps<HeadLossOp>()))
      if (!head.use_empty())
        withGradients(head);
    AccumulateOp::create(builder, loss.getLoc(), StateKey{StateKind::loss, ""},
                         terminator.getOperand(0));
    terminator->setOperands({});
    llvm::SmallDenseSet<Operation *> isForward(forward.begin(), forward.end());
    for (Operation &op : function.getBody().front().without_terminator())
      if (!isForward.contains(&op) &&
          !isa<HeadLossGradOp>(op)) // That is the end of both passes.
        setPass(&op, PassKind::backward);
    // A fused gradient op may have taken the place of its forward op.
    for (Operation *op : llvm::reverse(forward))
      if (isOpTriviallyDead(op))
        op->erase();
      else
        setConstant(op, false);
    function.setFunctionType(
        builder.getFunctionType(function.getArgumentTypes(), {}));
    function.setName(symbolOf(StepFunction::microbatch));
    return success();
  }

private:
  /// Each is added up as a metric where it stands.
  void takeAuxiliaryLosses() {
    for (auto op :
         llvm::make_early_inc_range(function.getOps<AuxiliaryLossOp>())) {
      auto coefficient =
          static_cast<float>(op.getCoefficient().convertToDouble());
      if (active.contains(op.getValue()) && coefficient != 0)
        add(op.getValue(),
            number(op.getValue(), builder.getF32FloatAttr(coefficient)));
      OpBuilder there(op);
      AccumulateOp::create(there, op.getLoc(),
                           StateKey{StateKind::metric, op.getName()},
                           op.getValue());
      op.erase();
    }
  }

  /// Values that some parameter changes: only they need gradients.
  void findActive() {
    for (Operation &op : function.getBody().front())
      if (!isConstant(&op) && !isUntrained(&op) &&
          (isa<ParameterOp>(op) || llvm::any_of(op.getOperands(), [&](Value v) {
             return active.contains(v);
           })))
        for (OpResult result : op.getResults())
          if (isa<FloatType>(tensorType(result).getElementType()))
            active.insert(result);
  }

  static bool isUntrained(Operation *op) {
    auto parameter = dyn_cast<ParameterOp>(op);
    return parameter && parameter.getUntrained();
  }

  void add(Value value, Value gradient) {
    if (auto parameter = value.getDefiningOp<ParameterOp>()) {
      AccumulateOp::create(builder, value.getLoc(),
                           StateKey{StateKind::gradient, parameter.getName()},
                           gradient);
      return;
    }
    Value &sum = gradients[value];
    if (!sum)
      sum = gradient;
    else if (Value merged = mergeUnslices(builder, sum, gradient))
      sum = merged;
    else
      sum = buildSum(builder, value.getLoc(), sum, gradient);
    if (FloatAttr known = knownScalar(sum))
      sum = number(value, known);
  }

  /// A scalar like `of`.
  Value number(Value of, FloatAttr value) {
    return buildMap(builder, of.getLoc(), of.getType(), {},
                    [&](ImplicitLocOpBuilder &b, ValueRange) -> Value {
                      return arith::ConstantOp::create(b, value);
                    });
  }

  LogicalResult visit(Operation *op) {
    SmallVector<Value> resultGradients;
    for (Value result : op->getResults())
      resultGradients.push_back(gradients.lookup(result));
    if (llvm::none_of(resultGradients, [](Value v) { return !!v; }))
      return success();
    auto needed = llvm::map_to_vector(
        op->getOperands(), [&](Value v) { return active.contains(v); });
    if (llvm::none_of(needed, [](bool b) { return b; }))
      return success();
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError("has no gradient; run -transformer-decompose "
                             "first, or build the model from ops that do");
    OfSameBlock inherit(builder, op);
    FailureOr<SmallVector<Value>> found =
        differentiable.buildGradients(builder, resultGradients, needed);
    if (failed(found))
      return failure();
    for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), *found))
      if (gradient)
        add(operand, gradient);
    return success();
  }

  func::FuncOp function;
  OpBuilder builder;
  llvm::DenseSet<Value> active;
  DenseMap<Value, Value> gradients;
};

/// How often what an op does is done.
double timesOf(Operation *op, const analysis::FoldedLayers &folded) {
  return static_cast<double>(folded.times(layerOf(op)));
}

/// Model flops of one microbatch over all ranks, before anything is computed
/// again or shared out. A large mesh passes 2^63, hence f64. They are added up
/// in two halves, so that they are the same in whatever order.
FloatAttr modelFlops(func::FuncOp microbatch,
                     const analysis::FoldedLayers &folded) {
  double high = 0, low = 0; // of 2^32, and below
  for (auto op : microbatch.getOps<FactorOpInterface>()) {
    if (!llvm::all_of(op->getOperandTypes(), [](Type type) {
          return cast<ShapedType>(type).hasStaticShape();
        }))
      continue;
    auto flops = static_cast<uint64_t>(op.getFlops());
    high += timesOf(op, folded) * static_cast<double>(flops >> 32);
    low += timesOf(op, folded) * static_cast<double>(flops & UINT32_MAX);
  }
  return Builder(microbatch.getContext()).getF64FloatAttr(high * 0x1p32 + low);
}

/// Those of experts that tokens do not choose, which 6 flops for each parameter
/// and token count too.
double flopsOfIdleExperts(ExpertsOp op) {
  auto choices = tensorType(op.getChoices());
  if (!choices.hasStaticShape())
    return 0;
  double k = static_cast<double>(choices.getShape().back()), elements = 0,
         tokens = static_cast<double>(choices.getNumElements()) / k,
         experts = static_cast<double>(tensorType(op.getGate()).getDimSize(0));
  for (Value weight : {op.getGate(), op.getUp(), op.getDown()})
    elements += static_cast<double>(tensorType(weight).getNumElements());
  return 6 * tokens * elements * (1 - k / experts);
}

/// What PaLM's formula has beside 6 flops for each parameter and token, of one
/// microbatch over all ranks. Attention counts forward and backward over every
/// pair of query and key, masked or not. Of experts only those count that are
/// chosen.
FloatAttr palmAttentionFlops(func::FuncOp microbatch,
                             const analysis::FoldedLayers &folded) {
  double flops = 0;
  for (auto op : microbatch.getOps<ExpertsOp>())
    flops -= timesOf(op, folded) * flopsOfIdleExperts(op);
  for (auto op : microbatch.getOps<AttentionOp>()) {
    auto query = cast<RankedTensorType>(op.getQ().getType()),
         key = cast<RankedTensorType>(op.getK().getType());
    if (query.hasStaticShape() && key.hasStaticShape())
      flops += timesOf(op, folded) * 12.0 *
               static_cast<double>(query.getNumElements()) *
               static_cast<double>(key.getDimSize(1));
  }
  return Builder(microbatch.getContext()).getF64FloatAttr(flops);
}

struct AutodiffPass : impl::AutodiffPassBase<AutodiffPass> {
  void runOnOperation() override {
    auto loss = functionOf(getOperation(), StepFunction::loss);
    if (!loss || loss.getNumResults() != 1 ||
        loss.getResultTypes()[0] !=
            RankedTensorType::get({}, Float32Type::get(&getContext()))) {
      getOperation().emitError()
          << "expected a function @loss with one result, a tensor<f32>";
      return signalPassFailure();
    }
    if (failed(Differentiation(loss).run()))
      return signalPassFailure();
    auto folded = analysis::FoldedLayers::of(getOperation());
    getOperation()->setAttr(facts::modelFlops, modelFlops(loss, folded));
    getOperation()->setAttr(facts::palmAttentionFlops,
                            palmAttentionFlops(loss, folded));
  }
};
} // namespace
} // namespace meshwork::autodiff
