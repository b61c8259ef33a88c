// When buffers are alive.
#include "passes/memory/Liveness.h"

using namespace mlir;

namespace meshwork::memory {
namespace {

plan::ActionTable tableOf(schedule::ProgramOp program) {
  schedule::Order order = schedule::orderOf(program);
  return {std::move(order.lists), std::move(order.actions)};
}

std::vector<schedule::BufferOp> buffersOf(schedule::ProgramOp program) {
  auto ops = program.getBody().getOps<schedule::BufferOp>();
  return {ops.begin(), ops.end()};
}
} // namespace

Liveness::Liveness(schedule::ProgramOp program)
    : buffers(buffersOf(program)), table(tableOf(program)),
      lives(table, static_cast<uint32_t>(buffers.size())) {
  llvm::DenseMap<schedule::BufferOp, uint32_t> numbers;
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    schedule::BufferOp op = buffer;
    numbers[op] = static_cast<uint32_t>(i);
    if (op.getPersistent())
      lives.keep(static_cast<uint32_t>(i));
  }
  for (auto [l, list] : llvm::enumerate(schedule::listsOf(program))) {
    SmallVector<Operation *> all = schedule::instructionsOf(list);
    lives.setRepeats(
        l, {schedule::repeatsOf(list), static_cast<uint32_t>(all.size())});
    for (auto [now, op] : llvm::enumerate(all)) {
      Value sum = schedule::addsUpIn(op);
      for (Value operand : op->getOperands()) {
        auto view = operand.getDefiningOp<schedule::ViewOp>();
        lives.touch({numbers.at(schedule::bufferOf(operand)),
                     static_cast<uint32_t>(l), static_cast<uint32_t>(now),
                     operand == sum, view.getAdvances().has_value(),
                     isa<schedule::SendOp>(op)});
      }
    }
  }
  for (auto input : program.getBody().getOps<schedule::InputOp>())
    if (plan::isOfMicrobatch(static_cast<plan::InputKind>(input.getKind())))
      lives.touchInput(numbers.at(schedule::bufferOf(input.getView())));
  lives.finish();
}

} // namespace meshwork::memory
