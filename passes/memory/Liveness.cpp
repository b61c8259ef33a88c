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
    uint32_t now = 0;
    for (Operation &op : list.getBody().front()) {
      if (!schedule::isInstruction(&op))
        continue;
      Value sum = schedule::addsUpIn(&op);
      for (Value operand : op.getOperands())
        lives.touch({numbers.at(schedule::bufferOf(operand)),
                     static_cast<uint32_t>(l), now, operand == sum});
      ++now;
    }
  }
  lives.finish();
}

} // namespace meshwork::memory
