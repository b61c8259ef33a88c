// Gives the open dims their sizes. Names say which size, so one walk over all
// types is enough.
#include "dialects/transformer/Transformer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_BINDPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

struct BindPass : impl::BindPassBase<BindPass> {
  using BindPassBase::BindPassBase;

  /// `type` with sizes for its open dims; null, after an error, where a dim has
  /// none.
  Type bound(Type type, Operation *at) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.hasStaticShape())
      return type;
    SmallVector<int64_t> shape(tensor.getShape());
    ArrayRef<StringAttr> names = dimsOf(tensor).getNames();
    for (auto [i, size] : llvm::enumerate(shape)) {
      if (!ShapedType::isDynamic(size))
        continue;
      StringRef name =
          i < names.size() ? names[i].getValue() : StringRef("(no name)");
      int64_t value = name == "batch"      ? batch
                      : name == "sequence" ? sequence
                                           : 0;
      if (value <= 0) {
        at->emitError() << "dim '" << name << "' of " << tensor
                        << " is open; only `batch` and `sequence` may be, and "
                           "the spec must give them";
        return {};
      }
      size = value;
    }
    return RankedTensorType::get(shape, tensor.getElementType(),
                                 tensor.getEncoding());
  }

  LogicalResult bindValues(ValueRange values, Operation *at) {
    for (Value value : values) {
      Type type = bound(value.getType(), at);
      if (!type)
        return failure();
      value.setType(type);
    }
    return success();
  }

  LogicalResult bindFunction(func::FuncOp function) {
    WalkResult walk = function.walk([&](Operation *op) {
      if (failed(bindValues(op->getResults(), op)))
        return WalkResult::interrupt();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          if (failed(bindValues(block.getArguments(), op)))
            return WalkResult::interrupt();
      if (auto loss = dyn_cast<HeadLossOp>(op))
        loss.setScale(APFloat(loss.getScale().convertToDouble() /
                              static_cast<double>(tokensPerStep)));
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
    SmallVector<Type> results;
    for (Type type : function.getResultTypes())
      results.push_back(bound(type, function));
    function.setFunctionType(FunctionType::get(
        &getContext(), function.getBody().getArgumentTypes(), results));
    return success();
  }

  void runOnOperation() override {
    if (tokensPerStep <= 0) {
      getOperation().emitError() << "tokens-per-step is " << tokensPerStep
                                 << ", expected a positive number";
      return signalPassFailure();
    }
    bool bound = true;
    for (auto function : getOperation().getOps<func::FuncOp>())
      bound &= succeeded(bindFunction(function));
    if (!bound)
      signalPassFailure();
  }
};
} // namespace
} // namespace meshwork::transform
