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
  for (auto [i, buffer] : llvm::enumerate(buffers))
    numbers[buffer] = static_cast<uint32_t>(i);
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
                     operand == sum, view.getAdvances().has_value()});
      }
    }
  }
  lives.finish();
}

} // namespace meshwork::memory
