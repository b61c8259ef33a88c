// Which instruction an op becomes, and what stands around it.
#include "passes/schedule/Lowering.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

Value Views::add(Value value, function_ref<FailureOr<Place>()> findPlace) {
  if (!value || !complete)
    return {};
  FailureOr<Place> place = findPlace();
  complete = succeeded(place);
  return complete ? to.builder.view(value.getLoc(), *place) : Value();
}

Value Views::of(Value value) {
  return add(value, [&] { return to.placement.of(value); });
}

Value Views::read(Value value, const Layout &layout) {
  return add(value, [&] { return to.copies.readable(value, layout); });
}

Value Views::write(Value value, const Layout &layout) {
  return add(value, [&] { return to.copies.writable(value, layout); });
}

bool isView(Operation *op) {
  return isa<transformer::ParameterOp, StateOp, StepInputOp, SliceOp,
             AccumulateOp, func::ReturnOp>(op);
}

LogicalResult lower(Operation *op, Lowering &to) {
  if (isView(op))
    return success();
  if (auto unslice = dyn_cast<UnsliceOp>(op))
    return emit(unslice, to);
  to.copies.begin(op);
  Block *block = to.builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  if (failed(to.gaps.zeroAround(op)) || failed(lowerInstruction(op, to)))
    return failure();
  to.copies.copyBack();
  to.builder.noteLayer(op, before);
  return success();
}

LogicalResult lowerInstruction(Operation *op, Lowering &to) {
  if (auto slice = dyn_cast<mesh::SliceOp>(op))
    return emit(slice, to);
  if (auto collective = dyn_cast<mesh::CollectiveOpInterface>(op))
    return to.buckets.add(collective);
  if (PartInputs::isOne(op)) {
    to.inputs.place(op);
    return success();
  }
  if (!isa<AssignOp>(op))
    to.buckets.flush(); // It may need what the bucket brings.
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ContractOp, ProductOp>(
          [&](auto op) { return emit(*productOf(op), to); })
      .Case<FusedOp, transformer::AttentionOp, transformer::AttentionGradOp,
            transformer::EmbeddingOp, transformer::EmbeddingGradOp,
            transformer::RotaryTableOp, transformer::RepeatOp, AssignOp,
            mesh::SendOp, mesh::ReceiveOp>(
          [&](auto op) { return emit(op, to); })
      .Default([](Operation *op) {
        return op->emitOpError(
            "has no instruction; the passes before -schedule-lower remove it");
      });
}

} // namespace meshwork::schedule
