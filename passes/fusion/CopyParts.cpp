// A whole that is set together has its parts written where they lie. A value
// that is somewhere already, or is a part twice, is copied there by a map.
#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"
#include "passes/fusion/Passes.h"

using namespace mlir;
namespace meshwork::fusion {
#define GEN_PASS_DEF_COPYPARTSPASS
#include "passes/fusion/Passes.h.inc"
namespace {
using namespace transformer;

struct CopyPartsPass : impl::CopyPartsPassBase<CopyPartsPass> {
  void runOnOperation() override {
    llvm::DenseSet<Value> placed;
    getOperation().walk([&](UnsliceOp op) {
      for (OpOperand &part : op->getOpOperands())
        if (isSomewhere(part.get()) || !placed.insert(part.get()).second)
          copy(part);
    });
  }

  /// Inputs, state, and views of another value. What is assigned lies in the
  /// state, what adds to a sum in the sum's place.
  static bool isSomewhere(Value value) {
    Operation *op = value.getDefiningOp();
    auto product = dyn_cast_or_null<ContractOp>(op);
    return !op ||
           (product && product.getBias() &&
            product.getBias().getType() == product.getType()) ||
           isa<ParameterOp, StateOp, StepInputOp, transformer::SliceOp,
               mesh::SliceOp>(op) ||
           llvm::any_of(value.getUsers(), llvm::IsaPred<AssignOp>);
  }

  static void copy(OpOperand &part) {
    Operation *whole = part.getOwner();
    OpBuilder builder(whole);
    Value copied =
        buildMap(builder, whole->getLoc(), part.get().getType(), part.get(),
                 [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
    if (whole->hasAttr("transformer.backward"))
      copied.getDefiningOp()->setAttr("transformer.backward",
                                      builder.getUnitAttr());
    part.set(copied);
  }
};
} // namespace
} // namespace meshwork::fusion
