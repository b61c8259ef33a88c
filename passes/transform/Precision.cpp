// Mixed precision as a change of storage types.
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/transform/Passes.h"
#include "passes/transform/ReadInF32.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_PRECISIONPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

bool staysF32(OpResult result) {
  auto op = dyn_cast<TensorOpInterface>(result.getOwner());
  return op && op.staysF32(result.getResultNumber());
}

struct PrecisionPass : impl::PrecisionPassBase<PrecisionPass> {
  using PrecisionPassBase::PrecisionPassBase;

  Type typeOf(spec::Type type) {
    Builder builder(&getContext());
    return type == spec::Type::bf16 ? Type(builder.getBF16Type())
                                    : Type(builder.getF32Type());
  }

  void runOnOperation() override {
    Type computeType = typeOf(compute), gradientType = typeOf(gradients);
    getOperation()->setAttr(facts::gradientType, TypeAttr::get(gradientType));
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      bool isUpdate = roleOf(function) == StepFunction::update;
      ReadInF32 readInF32(function);
      function.walk([&](Operation *op) {
        if (auto state = dyn_cast<StateOp>(op);
            state && state.getKind() == StateKind::gradient)
          setElement(state.getResult(), gradientType);
        else if (isa_and_nonnull<FusedOp, MapOp, ReduceOp>(op->getParentOp()) ||
                 isUpdate)
          return;
        for (OpResult result : op->getResults())
          if (!staysF32(result) && !readInF32.contains(result))
            setElement(result, computeType);
      });
      // An unslice moves its parts, and a product has one type: what stays f32
      // is rounded before.
      function.walk([](UnsliceOp op) {
        roundOperands(op, tensorType(op.getResult()).getElementType());
      });
      function.walk([&](ContractOp op) {
        if (tensorType(op.getLhs()).getElementType() !=
            tensorType(op.getRhs()).getElementType())
          roundOperands(op, computeType);
      });
    }
  }

  static void roundOperands(Operation *op, Type element) {
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = tensorType(operand.get());
      if (type.getElementType() == element)
        continue;
      Value rounded = buildMap(
          builder, op->getLoc(), withElement(type, element), operand.get(),
          [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
      inheritFacts(op, rounded.getDefiningOp());
      operand.set(rounded);
    }
  }

  static void setElement(Value value, Type element) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (type && type.getRank() > 0 && isa<FloatType>(type.getElementType()))
      value.setType(withElement(type, element));
  }
};
} // namespace
} // namespace meshwork::transform
