#include "passes/schedule/Order.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace meshwork::schedule {

static Use useOf(Value value, bool isWritten) {
  auto view = value.getDefiningOp<ViewOp>();
  BufferOp buffer = bufferOf(value);
  if ((view.getShifts() && !view.getShifts()->empty()) || view.getAdvances())
    return {buffer, 0, buffer.getSizeBytes(), isWritten};
  auto type = cast<MemRefType>(value.getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0, last = 0;
  (void)type.getStridesAndOffset(strides, offset);
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides))
    last += (size - 1) * stride;
  int64_t begin = view.getOffset();
  return {buffer, begin,
          begin + (last + 1) * (type.getElementTypeBitWidth() / 8), isWritten};
}

SmallVector<Use> usesOf(Operation *instruction) {
  SmallVector<Use> uses;
  if (auto repeat = dyn_cast<RepeatOp>(instruction)) {
    for (Operation &op : repeat.getBody().front())
      if (isInstruction(&op))
        llvm::append_range(uses, usesOf(&op));
    return uses;
  }
  auto op = cast<InstructionOpInterface>(instruction);
  for (Value view : op.getReads())
    uses.push_back(useOf(view, /*isWritten=*/false));
  for (Value view : op.getWrites())
    uses.push_back(useOf(view, /*isWritten=*/true));
  return uses;
}

bool conflict(Operation *a, Operation *b) {
  SmallVector<Use> others = usesOf(b);
  return llvm::any_of(usesOf(a), [&](const Use &one) {
    return llvm::any_of(others,
                        [&](const Use &other) { return one.conflicts(other); });
  });
}

void moveInstruction(Operation *instruction, Block *block, Operation *before) {
  auto place = [&](Operation *op) {
    before ? op->moveBefore(before) : op->moveBefore(block, block->end());
  };
  for (OpOperand &operand : instruction->getOpOperands()) {
    Operation *view = operand.get().getDefiningOp();
    if (!view->hasOneUse()) {
      OpBuilder builder(view);
      view = builder.clone(*view);
      operand.set(view->getResult(0));
    }
    place(view);
  }
  place(instruction);
}

} // namespace meshwork::schedule
