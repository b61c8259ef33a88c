// Mixed precision as a change of storage types.
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/transform/Passes.h"

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
      function.walk([&](Operation *op) {
        if (auto state = dyn_cast<StateOp>(op);
            state && state.getKind() == StateKind::gradient)
          setElement(state.getResult(), gradientType);
        else if (isa_and_nonnull<FusedOp, MapOp, ReduceOp>(op->getParentOp()) ||
                 isUpdate)
          return;
        for (OpResult result : op->getResults())
          if (!staysF32(result))
            setElement(result, computeType);
      });
      function.walk([](UnsliceOp op) { convertParts(op); });
    }
  }

  /// An unslice moves its parts, so one that stays f32 is rounded before.
  static void convertParts(UnsliceOp op) {
    OpBuilder builder(op);
    Type element = tensorType(op.getResult()).getElementType();
    for (OpOperand &part : op->getOpOperands()) {
      auto type = tensorType(part.get());
      if (type.getElementType() == element)
        continue;
      Value rounded =
          buildMap(builder, op.getLoc(), withElement(type, element), part.get(),
                   [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
      inheritFacts(op, rounded.getDefiningOp());
      part.set(rounded);
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
