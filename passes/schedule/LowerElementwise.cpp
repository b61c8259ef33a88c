// Clusters of elementwise ops, and the state that they assign.
#include "passes/schedule/LoweringKinds.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

static LogicalResult emit(FusedOp op, Lowering &to) {
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
  Kernel kernel = to.kernels.add(op, places);
  LaunchOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(kernel.flops),
      builder.i64(bytesOfValues(op)), FlatSymbolRefAttr::get(kernel.function),
      builder.i64(kernel.items), builder.i64(op.getNumResults()), views);
  return success();
}

/// Most values are made in the place of the state, and a gradient's sum is
/// where sums of it go. What could not be made there is copied.
static LogicalResult emit(AssignOp op, Lowering &to) {
  if (op.getKind() == StateKind::gradient &&
      to.gradients.parameterOf(op.getValue()) == op.getName())
    return success();
  FailureOr<Place> state = to.placement.ofState(op);
  return failed(state)
             ? failure()
             : copyUnlessThere(op.getLoc(), op.getValue(), *state, to);
}

void attachElementwise(MLIRContext *context) {
  attach<Computing, FusedOp>(context);
  attach<Moving, AssignOp>(context);
}

} // namespace meshwork::schedule
