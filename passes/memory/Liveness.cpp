// When buffers are alive.
#include "passes/memory/Liveness.h"

using namespace mlir;

namespace meshwork::memory {

llvm::MapVector<schedule::BufferOp, Life> livesOf(schedule::ProgramOp program) {
  llvm::MapVector<schedule::BufferOp, Life> lives;
  constexpr int64_t untouched = -1;
  for (auto buffer : program.getBody().getOps<schedule::BufferOp>())
    lives[buffer] = {untouched, untouched};
  int64_t now = 0;
  for (schedule::PhaseOp phase : schedule::phasesOf(program))
    for (Operation &op : phase.getBody().front()) {
      if (!schedule::isInstruction(&op))
        continue;
      for (Value operand : op.getOperands()) {
        Life &life = lives[schedule::bufferOf(operand)];
        if (life.first == untouched)
          life.first = now;
        life.last = now;
      }
      ++now;
    }
  for (auto &[buffer, life] : lives)
    if (life.first == untouched)
      life = {0, 0};
  return lives;
}

} // namespace meshwork::memory
