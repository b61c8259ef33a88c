// What stands around the instruction that an op becomes (LoweringModels.cpp).
#include "passes/schedule/Lowering.h"
#include "passes/schedule/LoweringModels.h"

using namespace mlir;

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

bool hasInstruction(Operation *op) {
  auto model = dyn_cast<LowerOpInterface>(op);
  return !model || model.hasInstruction();
}

LogicalResult lower(Operation *op, Lowering &to) {
  if (!hasInstruction(op))
    return cast<LowerOpInterface>(op).lower(to);
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
  auto model = dyn_cast<LowerOpInterface>(op);
  if (!model)
    return op->emitOpError(
        "has no instruction; the passes before -schedule-lower remove it");
  if (model.needsBucket())
    to.buckets.flush();
  return model.lower(to);
}

} // namespace meshwork::schedule
