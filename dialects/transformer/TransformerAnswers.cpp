// What ops tell passes of themselves where it depends on more than their kind.
#include "dialects/transformer/Transformer.h"

using namespace mlir;
namespace meshwork::transformer {

/// Sums, differences, and products with constants of what comes in.
bool MapOp::isLinear() {
  // Most maps are not, and an op of theirs says so at once.
  if (!llvm::all_of(getBody().front().without_terminator(),
                    llvm::IsaPred<arith::ConstantOp, arith::MulFOp,
                                  arith::AddFOp, arith::SubFOp, arith::NegFOp>))
    return false;
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

/// A product that adds to another sum already cannot.
bool ContractOp::addsUp(unsigned) { return !getBias(); }

bool MapOp::drawsWords() {
  return getBody()
      .walk([](DrawOpInterface) { return WalkResult::interrupt(); })
      .wasInterrupted();
}
bool AttentionOp::drawsWords() { return !getRandom().empty(); }
bool AttentionGradOp::drawsWords() { return !getRandom().empty(); }

static SmallVector<KernelSize> sizesOfTable(Value table) {
  return llvm::map_to_vector(
      llvm::zip_equal(dimsOf(table).getNames(), tensorType(table).getShape()),
      [](auto dim) {
        auto [name, size] = dim;
        return KernelSize{KernelSize::table, name, size};
      });
}
SmallVector<KernelSize> EmbeddingOp::getKernelSizes() {
  return sizesOfTable(getTable());
}
SmallVector<KernelSize> EmbeddingGradOp::getKernelSizes() {
  return sizesOfTable(getResult());
}

static SmallVector<KernelSize> sizesOfQueries(Value q) {
  constexpr unsigned tokens = 1, elements = 3;
  auto sizeOf = [&](KernelSize::Kind kind, unsigned dim) {
    return KernelSize{kind, dimsOf(q).getNames()[dim],
                      tensorType(q).getDimSize(dim)};
  };
  return {sizeOf(KernelSize::headElements, elements),
          sizeOf(KernelSize::tokens, tokens)};
}
SmallVector<KernelSize> AttentionOp::getKernelSizes() {
  return sizesOfQueries(getQ());
}
SmallVector<KernelSize> AttentionGradOp::getKernelSizes() {
  return sizesOfQueries(getQ());
}

StateUse stateUseOf(Operation *op) {
  auto tensors = dyn_cast_or_null<TensorOpInterface>(op);
  return tensors ? tensors.getStateUse() : StateUse::none;
}

std::optional<StateKey> usedStateOf(Operation *op) {
  auto tensors = dyn_cast_or_null<TensorOpInterface>(op);
  return tensors ? tensors.getUsedState() : std::nullopt;
}

bool isLinear(Operation *op) {
  auto tensors = dyn_cast<TensorOpInterface>(op);
  return tensors && tensors.isLinear();
}

bool isFusible(Operation *op) {
  auto tensors = dyn_cast_or_null<TensorOpInterface>(op);
  return tensors && tensors.isFusible();
}

} // namespace meshwork::transformer
