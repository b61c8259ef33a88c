// What ops tell passes of themselves where it depends on more than their kind.
#include "dialects/transformer/Transformer.h"

using namespace mlir;
namespace meshwork::transformer {

/// Sums, differences, and products with constants of what comes in.
bool MapOp::isLinear() {
  llvm::SmallDenseSet<Value> linear;
  for (BlockArgument argument : getBody().getArguments()) {
    if (!argument.getType().isF32())
      return false;
    linear.insert(argument);
  }
  auto isConstant = [](Value value) {
    return isa_and_nonnull<arith::ConstantOp>(value.getDefiningOp());
  };
  for (Operation &op : getBody().front().without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    bool allLinear = llvm::all_of(
        op.getOperands(), [&](Value value) { return linear.contains(value); });
    bool isScaled =
        isa<arith::MulFOp>(op) &&
        ((linear.contains(op.getOperand(0)) && isConstant(op.getOperand(1))) ||
         (linear.contains(op.getOperand(1)) && isConstant(op.getOperand(0))));
    if (!isScaled &&
        !(allLinear && isa<arith::AddFOp, arith::SubFOp, arith::NegFOp>(op)))
      return false;
    linear.insert(op.getResult(0));
  }
  return llvm::all_of(getBody().front().getTerminator()->getOperands(),
                      [&](Value value) { return linear.contains(value); });
}

bool ReduceOp::isLinear() { return getKind() == Reduction::add; }

/// Rows of a table that stays f32.
bool EmbeddingOp::staysF32(unsigned) {
  auto table = getTable().getDefiningOp<TensorOpInterface>();
  return table && table.staysF32(cast<OpResult>(getTable()).getResultNumber());
}

/// The rows' log-sum-exp.
bool AttentionOp::staysF32(unsigned result) { return result == 1; }

bool isLinear(Operation *op) {
  auto tensors = dyn_cast<TensorOpInterface>(op);
  return tensors && tensors.isLinear();
}

bool isFusible(Operation *op) {
  auto tensors = dyn_cast_or_null<TensorOpInterface>(op);
  return tensors && tensors.isFusible();
}

} // namespace meshwork::transformer
