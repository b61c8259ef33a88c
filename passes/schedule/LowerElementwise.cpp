// Clusters of elementwise ops, and the state that they assign.
#include "passes/codegen/KernelEmitter.h"
#include "passes/schedule/Lowering.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

LogicalResult emit(FusedOp op, Lowering &to) {
  ProgramBuilder &builder = to.builder;
  SmallVector<Place> places;
  SmallVector<Value> views;
  for (Value value :
       llvm::concat<Value>(llvm::to_vector(op->getOperands()),
                           llvm::to_vector_of<Value>(op->getResults()))) {
    FailureOr<Place> place = to.placement.of(value);
    if (failed(place))
      return failure();
    places.push_back(*place);
    views.push_back(builder.view(op.getLoc(), *place));
  }
  LaunchOp::create(builder, op.getLoc(), builder.sourceOf(op),
                   builder.i64(codegen::countFlops(op)),
                   builder.i64(bytesOfValues(op)), to.kernels.add(op, places),
                   builder.i64(codegen::countItems(op)),
                   builder.i64(op.getNumResults()), views);
  return success();
}

/// Elementwise results are computed in the place of the state, and a gradient's
/// sum is where sums of it go; anything else has no business here.
LogicalResult emit(AssignOp op, Lowering &to) {
  FailureOr<Place> value = to.placement.of(op.getValue());
  if (failed(value))
    return failure();
  Place state = to.placement.states.of(op.getKey(), tensorType(op.getValue()));
  bool isReduced = op.getKind() == StateKind::gradient &&
                   to.gradients.parameterOf(op.getValue()) == op.getName();
  if (value->buffer == state.buffer || isReduced)
    return success();
  return op.emitOpError(
      "assigns a value that lies elsewhere; it is assigned twice, or is itself "
      "a parameter or a part of a tensor");
}

} // namespace meshwork::schedule
