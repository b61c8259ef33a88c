// Does what Epilogues.cpp decides: products with epilogues, and clusters that
// do less or are gone.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/fusion/Epilogues.h"
#include "passes/fusion/Passes.h"

using namespace mlir;
namespace meshwork::fusion {
#define GEN_PASS_DEF_FOLDEPILOGUESPASS
#include "passes/fusion/Passes.h.inc"
namespace {
using namespace transformer;

/// Sums as the chunks of a cluster: one chunk.
Type typeOfSums(const Fold &fold, Value chunks) {
  auto type = tensorType(chunks);
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = 1;
  ContractOp product = fold.product;
  return RankedTensorType::get(shape, product.getType().getElementType(),
                               type.getEncoding());
}

/// The product of `fold` in the place of its contract.
ProductOp buildProduct(const Fold &fold, Type aux) {
  ContractOp contract = fold.product;
  OpBuilder builder(contract);
  bool isGradient = fold.epilogue == Epilogue::gelu_grad;
  auto product = ProductOp::create(
      builder, contract.getLoc(), contract.getType(), aux,
      contract.getEquationAttr(), contract.getLhs(), contract.getRhs(),
      contract.getBias(), isGradient ? fold.input : Value(),
      EpilogueAttr::get(builder.getContext(), fold.epilogue));
  product->setDiscardableAttrs(contract->getDiscardableAttrDictionary());
  return product;
}

/// Those that add up chunks add up one.
void replaceChunks(Value chunks, Value sums) {
  for (OpOperand &use : llvm::make_early_inc_range(chunks.getUses())) {
    auto adding = cast<FusedOp>(use.getOwner());
    adding.getBody()
        .getArgument(use.getOperandNumber())
        .setType(sums.getType());
    use.set(sums);
  }
}

void foldSum(FusedOp cluster, const Fold &fold) {
  ContractOp contract = fold.product;
  Value chunks = cluster.getResult(fold.result);
  std::optional<SmallVector<Operation *>> users = usersToMove(chunks, contract);
  ProductOp product = buildProduct(fold, typeOfSums(fold, chunks));
  Operation *last = product;
  for (Operation *user : *users) {
    user->moveAfter(last);
    last = user;
  }
  replaceChunks(chunks, product.getAux());
  contract.getResult().replaceAllUsesWith(product.getResult());
  contract.erase();
}

/// Whether anything but what `cluster` is rid of reads `value`.
bool isRead(Value value, FusedOp cluster, const Remainder &rest) {
  return llvm::any_of(value.getUsers(),
                      [&](Operation *user) { return user != cluster; }) ||
         llvm::any_of(rest.leaves, [&](Value leaf) {
           auto argument = dyn_cast<BlockArgument>(leaf);
           return argument &&
                  cluster.getInputs()[argument.getArgNumber()] == value;
         });
}

/// GELU, or its gradient; the product's result.
Value foldFunction(FusedOp cluster, const Fold &fold, const Remainder &rest) {
  ContractOp contract = fold.product;
  Value before = contract.getResult();
  bool isGradient = fold.epilogue == Epilogue::gelu_grad;
  // What GELU was applied to may be computed again after the contract stood.
  if (isGradient)
    contract->moveBefore(cluster);
  bool keepsInput = !isGradient && isRead(before, cluster, rest);
  ProductOp product =
      buildProduct(fold, keepsInput ? before.getType() : Type());
  if (keepsInput)
    before.replaceAllUsesWith(product.getAux());
  cluster.getResult(fold.result).replaceAllUsesWith(product.getResult());
  return product.getResult();
}

void fold(FusedOp cluster, ArrayRef<Fold> folds) {
  Remainder rest = remainderOf(cluster, folds);
  DenseMap<Value, Value> values;
  SmallVector<ContractOp> replaced;
  auto foldAll = [&](Epilogue epilogue) {
    for (const Fold &one : folds)
      if (one.epilogue == epilogue) {
        Value inner =
            cluster.getBody().front().getTerminator()->getOperand(one.result);
        values[inner] = foldFunction(cluster, one, rest);
        replaced.push_back(one.product);
      }
  };
  for (const Fold &one : folds)
    if (one.epilogue == Epilogue::sum_lhs || one.epilogue == Epilogue::sum_rhs)
      foldSum(cluster, one);
  // A gradient reads what a GELU of the same cluster may write beside.
  foldAll(Epilogue::gelu_grad);
  foldAll(Epilogue::gelu);
  if (!rest.results.empty())
    rebuild(cluster, rest, values);
  cluster.erase();
  for (ContractOp contract : replaced)
    contract.erase();
}

struct FoldEpiloguesPass : impl::FoldEpiloguesPassBase<FoldEpiloguesPass> {
  using FoldEpiloguesPassBase::FoldEpiloguesPassBase;
  void runOnOperation() override {
    SmallVector<FusedOp> clusters;
    getOperation().walk([&](FusedOp op) { clusters.push_back(op); });
    for (FusedOp cluster : clusters) {
      SmallVector<Fold> folds = chooseFolds(cluster, measured);
      if (!folds.empty())
        fold(cluster, folds);
    }
  }
};
} // namespace
} // namespace meshwork::fusion
