// How ops become instructions, where the file that emits an instruction does
// not say so itself: ops that share an emitter, and ops that need no
// instruction.
#include "passes/schedule/LoweringModels.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/schedule/LoweringKinds.h"

using namespace mlir;
using namespace meshwork::transformer;

#include "passes/schedule/LowerInterface.cpp.inc"

namespace meshwork::schedule {
namespace {

template <typename Op> struct Product : Model<Product<Op>, Op, true, true> {
  LogicalResult lower(Operation *op, Lowering &to) const {
    return emit(*productOf(op), to);
  }
};
template <typename Op>
struct Collective : Model<Collective<Op>, Op, true, false> {
  LogicalResult lower(Operation *op, Lowering &to) const {
    return to.buckets.add(cast<mesh::CollectiveOpInterface>(op));
  }
};
/// The launcher writes these numbers; they need a place only.
template <typename Op> struct Input : Model<Input<Op>, Op, true, false> {
  LogicalResult lower(Operation *op, Lowering &to) const {
    to.inputs.place(op);
    return success();
  }
};
/// No instruction: those that use the value find its bytes.
template <typename Op> struct View : Model<View<Op>, Op, false, false> {
  LogicalResult lower(Operation *, Lowering &) const { return success(); }
};

void attachAll(MLIRContext *context, TransformerDialect *, mesh::MeshDialect *,
               func::FuncDialect *) {
  for (auto attachFile :
       {attachAttention, attachElementwise, attachExperts, attachParts,
        attachRepeat, attachTables, attachTransfers})
    attachFile(context);
  attach<Product, ContractOp, ProductOp>(context);
  attach<Collective, mesh::AllReduceOp, mesh::AllGatherOp,
         mesh::ReduceScatterOp, mesh::AllToAllOp, mesh::PermuteOp>(context);
  attach<Input, mesh::CoordinateOp, mesh::ExtentOp, mesh::PositionsOp>(context);
  attach<View, transformer::ParameterOp, StateOp, StepInputOp,
         transformer::SliceOp, AccumulateOp, func::ReturnOp>(context);
}
} // namespace

void registerLowerings(DialectRegistry &registry) {
  registry.addExtension(attachAll);
}

} // namespace meshwork::schedule
