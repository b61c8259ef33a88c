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

/// Ops whose results some op reads in f32, itself or behind what maps or moves
/// their elements. What is stored for a step keeps its type.
class ReadInF32 {
public:
  explicit ReadInF32(func::FuncOp function) {
    for (Block &block : function.getBody())
      for (Operation &op : llvm::reverse(block))
        if (stateUseOf(&op) == StateUse::none &&
            llvm::any_of(op.getUses(),
                         [&](OpOperand &use) { return isRead(use); }))
          ops.insert(&op);
  }
  bool contains(Operation *op) const { return ops.contains(op); }

private:
  bool isRead(OpOperand &use) const {
    auto user = dyn_cast<TensorOpInterface>(use.getOwner());
    return user && (user.readsF32(use.getOperandNumber()) ||
                    (user.isElementwise() && ops.contains(user)));
  }

  llvm::DenseSet<Operation *> ops;
};

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
          if (!staysF32(result) && !readInF32.contains(op))
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
