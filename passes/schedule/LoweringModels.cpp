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

template <typename Op>
struct Product : Model<Product<Op>, Op, true, false, true> {
  LogicalResult lower(Operation *op, Lowering &to) const {
    return emit(*productOf(op), to);
  }
};
template <typename Op>
struct Collective : Model<Collective<Op>, Op, true, false, false> {
  LogicalResult lower(Operation *op, Lowering &to) const {
    return to.buckets.add(cast<mesh::CollectiveOpInterface>(op));
  }
};
/// The launcher writes these numbers; they need a place only.
template <typename Op> struct Input : Model<Input<Op>, Op, true, false, false> {
  LogicalResult lower(Operation *op, Lowering &to) const {
    to.inputs.place(op);
    return success();
  }
};
/// No instruction: those that use the value find its bytes.
template <typename Op, bool view>
struct Found : Model<Found<Op, view>, Op, false, view, false> {
  LogicalResult lower(Operation *, Lowering &) const { return success(); }
};
template <typename Op> using Kept = Found<Op, false>;
template <typename Op> using View = Found<Op, true>;

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
  attach<Kept, transformer::ParameterOp, StateOp, StepInputOp, AccumulateOp,
         func::ReturnOp>(context);
  attach<View, transformer::SliceOp, SplitOp>(context);
}
} // namespace

bool isViewOfOperand(Operation *op) {
  auto model = dyn_cast_or_null<LowerOpInterface>(op);
  return model && model.isViewOfOperand();
}

void registerLowerings(DialectRegistry &registry) {
  registry.addExtension(attachAll);
}

} // namespace meshwork::schedule
