// Data parallelism. Names say which dim is the batch, factors say which ops
// add up over it; a value that does is partial until @update's all_reduce.
#include "dialects/transformer/Transformer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/partition/Passes.h"

using namespace mlir;
namespace meshwork::partition {
#define GEN_PASS_DEF_SPLITBATCHPASS
#include "passes/partition/Passes.h.inc"
namespace {
using namespace transformer;

constexpr StringRef batchName = "batch";

/// Whether `op` sums its operands over the batch into a result.
bool reducesBatch(Operation *op) {
  auto factored = dyn_cast<FactorOpInterface>(op);
  if (!factored)
    return false;
  return llvm::any_of(factored.getFactors(), [](const Factor &factor) {
    return factor.name == batchName && factor.kind == Factor::reduction;
  });
}

/// Results of `op` that lack the batch: partial where `op` reduces it.
bool lacksBatch(Value value) {
  return dimsOf(value).find(StringAttr::get(value.getContext(), batchName)) < 0;
}

/// A partial value may only be accumulated (or set among zeros before that).
LogicalResult checkPartial(OpResult value) {
  for (Operation *user : value.getUsers()) {
    if (isa<AccumulateOp>(user))
      continue;
    if (auto unslice = dyn_cast<UnsliceOp>(user)) {
      if (failed(checkPartial(cast<OpResult>(unslice.getResult()))))
        return failure();
      continue;
    }
    InFlightDiagnostic diag = user->emitOpError("needs a value that is partial: it is summed over the dim `batch`, which mesh axes split");
    diag.attachNote(value.getLoc()) << "summed here";
    return diag;
  }
  return success();
}

struct SplitBatchPass : impl::SplitBatchPassBase<SplitBatchPass> {
  using SplitBatchPassBase::SplitBatchPassBase;

  FailureOr<int64_t> numParts() {
    auto mesh = getOperation()->getAttrOfType<DictionaryAttr>("mesh.axes");
    int64_t parts = 1;
    for (const std::string &axis : axes) {
      auto size = mesh ? mesh.getAs<IntegerAttr>(axis) : IntegerAttr();
      if (!size)
        return getOperation().emitError() << "axis '" << axis << "' is not in mesh.axes";
      parts *= size.getInt();
    }
    return parts;
  }

  LogicalResult split(Value value, int64_t parts) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    int64_t position = type ? dimsOf(type).find(StringAttr::get(&getContext(), batchName)) : -1;
    if (position < 0)
      return success();
    SmallVector<int64_t> shape(type.getShape());
    if (shape[position] % parts)
      return emitError(value.getLoc()) << "dim `batch` of size " << shape[position] << " is not divisible by " << parts
                                       << " parts; try " << (shape[position] / parts + 1) * parts;
    shape[position] /= parts;
    value.setType(RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
    return success();
  }

  LogicalResult splitFunction(func::FuncOp function, int64_t parts) {
    bool fine = true;
    function.walk([&](Operation *op) {
      if (reducesBatch(op))
        for (OpResult result : op->getResults())
          if (lacksBatch(result))
            fine &= succeeded(checkPartial(result));
    });
    for (BlockArgument argument : function.getArguments())
      fine &= succeeded(split(argument, parts));
    function.walk([&](Operation *op) {
      for (OpResult result : op->getResults())
        fine &= succeeded(split(result, parts));
    });
    function.setFunctionType(FunctionType::get(&getContext(), function.getBody().getArgumentTypes(), {}));
    return success(fine);
  }

  void reduceStates(func::FuncOp update) {
    OpBuilder builder(&getContext());
    SmallVector<StringRef> names(axes.begin(), axes.end());
    std::string cause = "summed over the batch, which is split over " + llvm::join(names, ", ");
    update.walk([&](StateOp state) {
      if (state.getKind() != StateKind::gradient && state.getKind() != StateKind::loss)
        return;
      builder.setInsertionPointAfter(state);
      std::string what = state.getKind() == StateKind::loss ? "loss: " : "gradient: ";
      auto reduced = mesh::AllReduceOp::create(builder, state.getLoc(), state.getType(), state.getResult(),
                                               builder.getStrArrayAttr(names), builder.getStringAttr(what + cause));
      state.getResult().replaceAllUsesExcept(reduced.getResult(), reduced);
    });
  }

  void runOnOperation() override {
    FailureOr<int64_t> parts = numParts();
    if (failed(parts))
      return signalPassFailure();
    auto microbatch = getOperation().lookupSymbol<func::FuncOp>("microbatch");
    auto update = getOperation().lookupSymbol<func::FuncOp>("update");
    if (!microbatch || !update) {
      getOperation().emitError() << "expected functions @microbatch and @update";
      return signalPassFailure();
    }
    if (*parts == 1)
      return;
    if (failed(splitFunction(microbatch, *parts)))
      return signalPassFailure();
    reduceStates(update);
  }
};
} // namespace
} // namespace meshwork::partition
