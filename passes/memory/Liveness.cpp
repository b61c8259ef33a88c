// When buffers are alive.
#include "passes/memory/Liveness.h"

using namespace mlir;

namespace meshwork::memory {

/// The microbatch repeats: what it reads from before must last to its end, and
/// what is read after it may be a sum, which must last from its start.
static Life whileRepeated(Life life, int64_t begin, int64_t end) {
  if (life.first < begin && life.last >= begin)
    life.last = std::max(life.last, end - 1);
  else if (life.first >= begin && life.first < end && life.last >= end)
    life.first = begin;
  return life;
}

llvm::MapVector<schedule::BufferOp, Life> livesOf(schedule::ProgramOp program) {
  llvm::MapVector<schedule::BufferOp, Life> lives;
  constexpr int64_t untouched = -1;
  for (auto buffer : program.getBody().getOps<schedule::BufferOp>())
    lives[buffer] = {untouched, untouched};
  int64_t now = 0;
  int64_t begin = 0, end = 0; // of the microbatch
  for (schedule::PhaseOp phase : schedule::phasesOf(program)) {
    bool isMicrobatch = phase.getName() == "microbatch";
    if (isMicrobatch)
      begin = now;
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
    if (isMicrobatch)
      end = now;
  }
  for (auto &[buffer, life] : lives)
    if (life.first == untouched)
      life = {0, 0};
    else
      life = whileRepeated(life, begin, end);
  return lives;
}

} // namespace meshwork::memory
