// Gives the open dims their sizes. Names say which size, so one walk over all
// types is enough.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/SpecKey.h"
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
      int64_t value = name == dims::samples  ? batch
                      : name == dims::tokens ? sequence
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

  /// A table of positions may be shorter than the spec's sequences.
  LogicalResult checkPositions(SliceOp op) {
    auto table = tensorType(op.getInput()), part = tensorType(op.getResult());
    int64_t dim = dimsOf(table).find(op.getDimAttr());
    if (dim < 0 || part.getRank() != table.getRank())
      return success();
    int64_t end = static_cast<int64_t>(op.getOffset()) + part.getDimSize(dim),
            size = table.getDimSize(dim);
    if (end <= size)
      return success();
    return emitError(analysis::ofSpec("batch.sequence", op.getLoc()))
           << "found " << int64_t{sequence} << ", but the model has " << size
           << " " << op.getDim() << "; expected at most "
           << size - (end - sequence);
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

  /// Of a microbatch; where targets are counted, of a step, each microbatch has
  /// its share.
  double tokensOfMean() const {
    return countsTargets ? 1 / static_cast<double>(microbatches)
                         : static_cast<double>(batch * sequence);
  }

  static void divide(HeadLossOp loss, double count) {
    loss.setScale(APFloat(loss.getScale().convertToDouble() / count));
  }

  /// Divides what @loss returns by the number of microbatches, so that their
  /// sum is the step's mean. A number that heads can take in, they do.
  void divideLoss(func::FuncOp function) {
    auto count = static_cast<double>(microbatches);
    for (auto op : function.getOps<AuxiliaryLossOp>())
      op.getValueMutable().assign(quotient(op, op.getValue(), count));
    Operation *end = function.getBody().front().getTerminator();
    SmallVector<OpOperand *> terms = {&end->getOpOperand(0)};
    while (!terms.empty()) {
      OpOperand *term = terms.pop_back_val();
      Value value = term->get();
      Operation *op = value.getDefiningOp();
      bool isSole = value.hasOneUse();
      if (auto head = dyn_cast_or_null<HeadLossOp>(op); head && isSole)
        divide(head, count);
      else if (isa_and_nonnull<AddOp, SubOp>(op) && isSole)
        for (OpOperand &operand : op->getOpOperands())
          terms.push_back(&operand);
      else
        term->set(quotient(term->getOwner(), value, count));
    }
  }

  static Value quotient(Operation *at, Value value, double count) {
    OpBuilder builder(at);
    return buildMap(
        builder, value.getLoc(), value.getType(), value,
        [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
          auto share = static_cast<float>(1 / count);
          return arith::MulFOp::create(
              b, x[0], arith::ConstantOp::create(b, b.getF32FloatAttr(share)));
        });
  }

  bool isLoss(func::FuncOp function) {
    return roleOf(function) == StepFunction::loss &&
           function.getNumResults() == 1 &&
           function.getResultTypes()[0] ==
               RankedTensorType::get({}, Float32Type::get(&getContext()));
  }

  LogicalResult bindFunction(func::FuncOp function) {
    WalkResult walk = function.walk([&](Operation *op) {
      if (failed(bindValues(op->getResults(), op)))
        return WalkResult::interrupt();
      if (auto slice = dyn_cast<SliceOp>(op);
          slice && failed(checkPositions(slice)))
        return WalkResult::interrupt();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          if (failed(bindValues(block.getArguments(), op)))
            return WalkResult::interrupt();
      if (auto loss = dyn_cast<HeadLossOp>(op))
        divide(loss, tokensOfMean());
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
    if (isLoss(function) && microbatches > 1)
      divideLoss(function);
    SmallVector<Type> results;
    for (Type type : function.getResultTypes())
      results.push_back(bound(type, function));
    function.setFunctionType(FunctionType::get(
        &getContext(), function.getBody().getArgumentTypes(), results));
    return success();
  }

  /// Rotary positions have no table, but a length that the model is made for.
  void warnOfLength() {
    auto most = getOperation()->getAttrOfType<IntegerAttr>(facts::maxPositions);
    if (most && sequence > most.getInt())
      emitWarning(analysis::ofSpec("batch.sequence", getOperation().getLoc()))
          << "found " << int64_t{sequence}
          << ", but the model is made for at most " << most.getInt()
          << " positions (max_position_embeddings)";
  }

  void runOnOperation() override {
    if (microbatches <= 0) {
      getOperation().emitError() << "microbatches is " << microbatches
                                 << ", expected a positive number";
      return signalPassFailure();
    }
    warnOfLength();
    bool bound = true;
    for (auto function : getOperation().getOps<func::FuncOp>())
      bound &= succeeded(bindFunction(function));
    if (!bound)
      signalPassFailure();
  }
};
} // namespace
} // namespace meshwork::transform
