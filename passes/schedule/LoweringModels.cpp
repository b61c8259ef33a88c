// Which instruction each op becomes. An op with one of its own: `emit` in one
// of the files Lower*.cpp, and its name here.
#include "passes/schedule/LoweringModels.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/schedule/Lowering.h"

using namespace mlir;
using namespace meshwork::transformer;

#include "passes/schedule/LowerInterface.cpp.inc"

namespace meshwork::schedule {
namespace {

/// What a kind of ops has in common besides how it is written.
template <typename Kind, typename Op, bool instruction, bool bucket>
struct Model : LowerOpInterface::ExternalModel<Kind, Op> {
  bool hasInstruction(Operation *) const { return instruction; }
  bool needsBucket(Operation *) const { return bucket; }
};

/// By the overload of `emit` for it.
template <typename Op, bool instruction, bool bucket>
struct Emitted
    : Model<Emitted<Op, instruction, bucket>, Op, instruction, bucket> {
  LogicalResult lower(Operation *op, Lowering &to) const {
    return emit(cast<Op>(op), to);
  }
};
/// May need what collectives bring.
template <typename Op> using Computing = Emitted<Op, true, true>;
/// Of state, where buckets find what they bring themselves.
template <typename Op> using Moving = Emitted<Op, true, false>;
/// Puts bytes of others side by side.
template <typename Op> using Joining = Emitted<Op, false, false>;

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
/// Numbers of a rank's part.
template <typename Op> struct Input : Model<Input<Op>, Op, true, false> {
  LogicalResult lower(Operation *op, Lowering &to) const {
    to.inputs.place(op);
    return success();
  }
};
/// Whoever reads or writes it finds its bytes.
template <typename Op> struct View : Model<View<Op>, Op, false, false> {
  LogicalResult lower(Operation *, Lowering &) const { return success(); }
};

template <template <typename> class Kind, typename... Ops>
void attach(MLIRContext *context) {
  (Ops::template attachInterface<Kind<Ops>>(*context), ...);
}

void attachAll(MLIRContext *context, TransformerDialect *, mesh::MeshDialect *,
               func::FuncDialect *) {
  attach<Computing, FusedOp, transformer::AttentionOp,
         transformer::AttentionGradOp, transformer::EmbeddingOp,
         transformer::EmbeddingGradOp, transformer::RotaryTableOp,
         transformer::RepeatOp, mesh::SendOp, mesh::ReceiveOp>(context);
  attach<Moving, AssignOp, mesh::SliceOp>(context);
  attach<Product, ContractOp, ProductOp>(context);
  attach<Collective, mesh::AllReduceOp, mesh::AllGatherOp,
         mesh::ReduceScatterOp, mesh::AllToAllOp, mesh::PermuteOp>(context);
  attach<Input, mesh::CoordinateOp, mesh::ExtentOp, mesh::PositionsOp>(context);
  attach<View, transformer::ParameterOp, StateOp, StepInputOp,
         transformer::SliceOp, AccumulateOp, func::ReturnOp>(context);
  attach<Joining, UnsliceOp>(context);
}
} // namespace

void registerLowerings(DialectRegistry &registry) {
  registry.addExtension(attachAll);
}

} // namespace meshwork::schedule
