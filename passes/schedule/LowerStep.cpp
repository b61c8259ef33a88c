// The list `step`: what is made of weights, of the update's numbers and of a
// rank's parts alone, once for all microbatches.
#include "dialects/transformer/Facts.h"
#include "passes/schedule/Lowering.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

namespace {
/// Finds the ops of @microbatch that go there, and lowers them.
class StepList {
public:
  StepList(func::FuncOp microbatch, Lowering &to);
  LogicalResult lower(Block &body);

  llvm::DenseSet<Operation *> lowered; // nothing is left to do for these

private:
  bool isOfStep(Operation *op) const;
  LogicalResult lower(Operation *op);
  LogicalResult find(Operation *user, Value operand);
  Place placeOf(Value value);

  Lowering &to;
  llvm::DenseSet<Value> known; // what is there when a step begins
};
} // namespace

StepList::StepList(func::FuncOp microbatch, Lowering &to) : to(to) {
  for (BlockArgument argument : microbatch.getArguments())
    if (inputOf(argument) == "target_counts")
      known.insert(argument);
  for (auto state : microbatch.getOps<StateOp>())
    if (state.getKind() == StateKind::optimizer) // The update alone writes it.
      known.insert(state);
}

/// Whether it is made of what the runtime writes once a step, and nothing else,
/// or says that it is of the step.
bool StepList::isOfStep(Operation *op) const {
  if (transformer::isOfStep(op))
    return true;
  return isa<FusedOp, mesh::AllReduceOp>(op) && op->getNumOperands() != 0 &&
         llvm::all_of(op->getOperands(),
                      [&](Value value) { return known.contains(value); });
}

LogicalResult StepList::lower(Block &body) {
  OpBuilder::InsertionGuard guard(to.builder);
  to.builder.toEndOf(to.builder.step);
  for (Operation &op : body)
    if (isOfStep(&op) && failed(lower(&op)))
      return failure();
  to.buckets.flush();
  to.copies.forget();
  return success();
}

/// Copies of weights are weights. What only the list `step` reads, as maxima of
/// parts, is gone behind it.
Place StepList::placeOf(Value value) {
  auto type = tensorType(value);
  if (llvm::all_of(value.getUsers(),
                   [](Operation *op) { return transformer::isOfStep(op); }))
    return to.placement.buffers.temporary(value);
  return type.getRank() > 0 && transformer::isOfStep(value.getDefiningOp())
             ? to.placement.buffers.copyOfWeight(value)
             : to.placement.buffers.persistent(
                   "of the step", BufferKind::results, type.getShape(),
                   type.getElementType());
}

/// What is there when a step begins: weights, what the step has made of them,
/// and numbers of a rank's part.
LogicalResult StepList::find(Operation *user, Value operand) {
  Operation *source = operand.getDefiningOp();
  if (known.contains(operand) ||
      isa_and_nonnull<transformer::ParameterOp>(source))
    return success();
  if (PartInputs::isOne(source)) {
    lowered.insert(source);
    to.inputs.place(source);
    return success();
  }
  InFlightDiagnostic error =
      user->emitOpError("is of the step (transformer.of_step) but reads what "
                        "each microbatch makes; expected parameters and what "
                        "the step makes of them");
  error.attachNote(operand.getLoc()) << "made here";
  return error;
}

LogicalResult StepList::lower(Operation *op) {
  lowered.insert(op);
  for (Value operand : op->getOperands())
    if (failed(find(op, operand)))
      return failure();
  for (Value result : op->getResults()) {
    to.placement.set(result, placeOf(result));
    known.insert(result);
  }
  to.copies.begin(op);
  if (failed(lowerInstruction(op, to)))
    return failure();
  to.copies.copyBack();
  return success();
}

FailureOr<llvm::DenseSet<Operation *>> lowerStep(func::FuncOp microbatch,
                                                 Lowering &to) {
  StepList step(microbatch, to);
  if (failed(step.lower(microbatch.getBody().front())))
    return failure();
  return std::move(step.lowered);
}

} // namespace meshwork::schedule
