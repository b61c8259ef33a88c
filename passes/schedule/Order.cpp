#include "passes/schedule/Order.h"

#include "lib/Plan/Overlap.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace meshwork::schedule {

bool Use::conflicts(const Use &other) const {
  if (buffer != other.buffer || (!isWritten && !other.isWritten))
    return false;
  return !view->advances.empty() || !other.view->advances.empty() ||
         plan::mayShareBytes(*view, *other.view);
}

int64_t passingBytes(ArrayRef<Use> uses, bool onlyWritten) {
  uint64_t bytes = 0;
  for (Use use : uses)
    if ((use.isWritten || !onlyWritten) && !use.buffer.getPersistent())
      bytes += use.view->spanBytes;
  return static_cast<int64_t>(bytes);
}

FailureOr<Uses> Uses::of(ProgramOp program, PackedProgram &tables) {
  Uses uses;
  auto views = plan::decodeViews(tables.plan(), *tables);
  if (!views.ok())
    return program.emitOpError() << std::string(views.status().message());
  uses.views = *std::move(views);
  program.walk([&](InstructionOpInterface op) {
    SmallVector<Use> own;
    for (auto [values, isWritten] :
         {std::pair(op.getReads(), false), std::pair(op.getWrites(), true)})
      for (Value value : values)
        own.push_back(
            {bufferOf(value), &uses.views[tables.numberOf(value)], isWritten});
    for (auto repeat = op->getParentOfType<RepeatOp>(); repeat;
         repeat = repeat->getParentOfType<RepeatOp>())
      llvm::append_range(uses.all[repeat], own);
    llvm::append_range(uses.all[op], own);
  });
  return uses;
}

bool Uses::conflict(Operation *a, Operation *b) const {
  return llvm::any_of((*this)[a], [&](const Use &one) {
    return llvm::any_of((*this)[b],
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
