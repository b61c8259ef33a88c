// What instructions cost and which of them touch the same bytes.
#include "passes/schedule/Overlap.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace meshwork::schedule {

double secondsOf(Operation *instruction, int64_t ranks, const Speeds &speeds) {
  double bytes = static_cast<double>(
      instruction->getAttrOfType<IntegerAttr>("bytes").getInt());
  double flops = static_cast<double>(
      instruction->getAttrOfType<IntegerAttr>("flops").getInt());
  auto collective = dyn_cast<CollectiveOp>(instruction);
  if (!collective)
    return std::max(flops / speeds.flops, bytes / speeds.memory);
  // A ring's bytes; `bytes` are those of the inputs.
  double others = static_cast<double>(ranks - 1);
  double share = collective.getKind() == CollectiveKind::all_gather ? others
                 : collective.getKind() == CollectiveKind::all_reduce
                     ? 2 * others / static_cast<double>(ranks)
                     : others / static_cast<double>(ranks);
  return speeds.latency + share * bytes / speeds.link;
}

static Use useOf(Value value, bool isWritten) {
  auto view = value.getDefiningOp<ViewOp>();
  BufferOp buffer = bufferOf(value);
  if (view.getShifts() && !view.getShifts()->empty())
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
  unsigned reads = instruction->getNumOperands() - countWrites(instruction);
  for (auto [i, operand] : llvm::enumerate(instruction->getOperands()))
    uses.push_back(useOf(operand, i >= reads));
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
