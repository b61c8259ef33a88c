// What is done to one part after the other: instructions once, on views that
// advance.
#include "passes/schedule/LoweringKinds.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

/// What is shared is used as it is outside, so that its copies are shared too.
static LogicalResult placeArguments(transformer::RepeatOp op,
                                    Placement &placement) {
  for (auto [argument, value] :
       llvm::zip_equal(op.sharedArguments(), op.getShared()))
    argument.replaceAllUsesWith(value);
  for (auto [argument, value] :
       llvm::zip_equal(op.cutArguments(), op.getCut())) {
    FailureOr<Place> whole = placement.of(value);
    if (failed(whole))
      return failure();
    placement.set(argument, turnOf(*whole, tensorType(value), op));
  }
  for (auto [argument, value, result] : llvm::zip_equal(
           op.carriedArguments(), op.getCarried(), op.carriedResults())) {
    if (failed(placement.takeOver(value, argument)))
      return failure();
    placement.set(result, *placement.of(argument));
  }
  return success();
}

/// Most are made where they go.
static LogicalResult placeYields(transformer::RepeatOp op, Lowering &to) {
  for (auto [yield, result] :
       llvm::zip_equal(op.joinedYields(), op.joinedResults())) {
    FailureOr<Place> whole = to.placement.of(result);
    if (failed(whole) ||
        failed(copyUnlessThere(op.getLoc(), yield,
                               turnOf(*whole, tensorType(result), op), to)))
      return failure();
  }
  for (auto [yield, result] :
       llvm::zip_equal(op.carriedYields(), op.carriedResults()))
    if (failed(
            copyUnlessThere(op.getLoc(), yield, *to.placement.of(result), to)))
      return failure();
  return success();
}

static LogicalResult emit(transformer::RepeatOp op, Lowering &to) {
  if (failed(placeArguments(op, to.placement)))
    return failure();
  Views views(to);
  Value count = views.of(op.getCount());
  if (!views.areComplete())
    return failure();
  ProgramBuilder &builder = to.builder;
  auto repeat = schedule::RepeatOp::create(
      builder, op.getLoc(), builder.sourceOf(op), builder.i64(0),
      builder.i64(0), builder.i64(op.getTimes()), count);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&repeat.getBody().emplaceBlock());
    for (Operation &inner : op.getBody().front().without_terminator())
      if (failed(lower(&inner, to)))
        return failure();
    if (failed(placeYields(op, to)))
      return failure();
    to.buckets.flush();
  }
  return success();
}

void attachRepeat(MLIRContext *context) {
  attach<Computing, transformer::RepeatOp>(context);
}

} // namespace meshwork::schedule
