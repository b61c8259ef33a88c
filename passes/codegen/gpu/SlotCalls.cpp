// Which tokens go to which rank: all that no token writes is -1 before.
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"
#include "passes/codegen/gpu/library/AssignSlotsGeometry.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
struct Assignment {
  int64_t tokens, k, ranks, slots, room;
};

FailureOr<Assignment> assignmentOf(schedule::AssignSlotsOp op) {
  auto shapeOf = [](Value value) {
    return cast<MemRefType>(value.getType()).getShape();
  };
  FailureOr<int64_t> choices = denseCount(op, op.getChoices(), "choices"),
                     slots = denseCount(op, op.getSlots(), "slots"),
                     ranks = denseCount(op, op.getRanks(), "ranks"),
                     places = denseCount(op, op.getPlaces(), "places");
  if (failed(choices) || failed(slots) || failed(ranks) || failed(places))
    return failure();
  if (std::max({*choices, *slots, *places}) > INT32_MAX)
    return op.emitOpError("has 2^31 choices, slots or places, or more");
  int64_t k = shapeOf(op.getChoices()).back(), rounds = *places / *ranks;
  if (k > assignSlots::mostOfToken)
    return op.emitOpError()
           << "has " << k << " choices of a token, expected at "
           << "most " << assignSlots::mostOfToken << " on a GPU";
  return Assignment{*choices / k, k, shapeOf(op.getSlots())[0] / rounds,
                    shapeOf(op.getSlots())[1], shapeOf(op.getRanks()).back()};
}
} // namespace

LogicalResult addCalls(schedule::AssignSlotsOp op, DeviceCalls &result) {
  FailureOr<Assignment> of = assignmentOf(op);
  if (failed(of))
    return failure();
  constexpr int64_t slots = 1, ranks = 2, places = 3, last = 4;
  for (int64_t operand : {slots, ranks, places}) {
    StridedView view = stridedView(op->getOperand(operand));
    int64_t bytes = llvm::product_of(view.shape) * view.bytes();
    if (failed(addFill(op, operand,
                       {1, 0, bytes, view.alignBytes, view.bytes()},
                       /*pattern=*/~0u, result)))
      return failure();
  }
  DeviceCall call{"meshwork_assign_slots",
                  {},
                  1,
                  assignSlots::threads,
                  assignSlots::sharedBytes(of->ranks)};
  call.pointer(0).pointer(slots).pointer(ranks).pointer(places).pointer(last);
  call.integers({of->tokens, of->k, static_cast<int64_t>(op.getExperts()),
                 static_cast<int64_t>(op.getMostChoices()), of->ranks,
                 of->slots, of->room});
  result.calls.push_back(std::move(call));
  return success();
}

} // namespace meshwork::codegen
