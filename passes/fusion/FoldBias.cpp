// contract + bias in one op.
#include "dialects/transformer/Transformer.h"
#include "passes/fusion/Passes.h"

using namespace mlir;
namespace meshwork::fusion {
#define GEN_PASS_DEF_FOLDBIASPASS
#include "passes/fusion/Passes.h.inc"
namespace {
using namespace transformer;

/// Whether `map` is just operand 0 + operand 1.
bool isSum(MapOp map) {
  Block &body = map.getBody().front();
  if (map.getInputs().size() != 2 || map.getNumResults() != 1 ||
      body.getOperations().size() != 2)
    return false;
  auto sum = dyn_cast<arith::AddFOp>(body.front());
  return sum && isa<BlockArgument>(sum.getLhs()) &&
         isa<BlockArgument>(sum.getRhs()) && sum.getLhs() != sum.getRhs();
}

/// Whether a product can add `bias` to its columns: the result's last dims,
/// all of them from one operand.
bool isColumnVector(Value bias, ContractOp product) {
  auto type = tensorType(bias), result = tensorType(product.getResult());
  auto equation = Equation::parse(product.getEquation());
  if (failed(equation) || type.getRank() == 0 ||
      type.getRank() >= result.getRank() ||
      dimsOf(type).getNames() !=
          dimsOf(result).getNames().take_back(type.getRank()))
    return false;
  StringRef columns = equation->result.take_back(type.getRank());
  StringRef rows = equation->result.drop_back(type.getRank());
  return llvm::all_of(columns,
                      [&](char c) { return !equation->lhs.contains(c); }) &&
         llvm::all_of(rows, [&](char c) { return equation->lhs.contains(c); });
}

/// FP8 products of cuBLASLt add a bias of bf16, into bf16.
bool takesBias(ContractOp product) {
  return product.getScales().empty() ||
         tensorType(product.getResult()).getElementType().isBF16();
}

struct FoldBiasPass : impl::FoldBiasPassBase<FoldBiasPass> {
  void runOnOperation() override {
    SmallVector<MapOp> sums;
    getOperation().walk([&](MapOp map) {
      if (isSum(map))
        sums.push_back(map);
    });
    for (MapOp map : sums)
      for (auto [product, bias] :
           {std::pair(map.getInputs()[0], map.getInputs()[1]),
            std::pair(map.getInputs()[1], map.getInputs()[0])}) {
        auto contract = product.getDefiningOp<ContractOp>();
        if (!contract || contract.getBias() || !product.hasOneUse() ||
            !isColumnVector(bias, contract) || !takesBias(contract) ||
            product.getType() != map.getResult(0).getType())
          continue;
        OpBuilder builder(map); // Here, where the bias is defined too.
        auto folded =
            ContractOp::create(builder, contract.getLoc(), contract.getType(),
                               contract.getEquationAttr(), contract.getLhs(),
                               contract.getRhs(), contract.getScales(), bias);
        folded->setDiscardableAttrs(contract->getDiscardableAttrDictionary());
        map.getResult(0).replaceAllUsesWith(folded.getResult());
        map.erase();
        contract.erase();
        break;
      }
  }
};
} // namespace
} // namespace meshwork::fusion
