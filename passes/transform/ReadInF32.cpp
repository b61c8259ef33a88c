#include "passes/transform/ReadInF32.h"
#include "dialects/transformer/Transformer.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

ReadInF32::ReadInF32(func::FuncOp function) {
  for (Block &block : function.getBody())
    for (Operation &op : llvm::reverse(block))
      for (Value result : op.getResults())
        if (stateUseOf(&op) == StateUse::none &&
            llvm::any_of(result.getUses(),
                         [&](OpOperand &use) { return isRead(use); }))
          results.insert(result);
}

bool ReadInF32::isRead(OpOperand &use) const {
  auto user = dyn_cast<TensorOpInterface>(use.getOwner());
  return user && (user.readsF32(use.getOperandNumber()) ||
                  (user.isElementwise() &&
                   llvm::any_of(user->getResults(), [&](Value result) {
                     return contains(result);
                   })));
}

} // namespace meshwork::transform
