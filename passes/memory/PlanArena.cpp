// One arena: every buffer has an offset at compile time. Largest first into
// the lowest free gap (Pisarchyk and Lee, arXiv 2001.03288, greedy by size).
#include "dialects/schedule/ProgramTables.h"
#include "lib/Plan/ProgramLives.h"
#include "passes/memory/Passes.h"

using namespace mlir;
namespace meshwork::memory {
#define GEN_PASS_DEF_PLANARENAPASS
#include "passes/memory/Passes.h.inc"
namespace {
using schedule::BufferOp;

/// A cache line, and the widest vector.
constexpr int64_t alignment = 64;
int64_t aligned(int64_t size) {
  return (size + alignment - 1) / alignment * alignment;
}

struct Placed {
  int64_t begin, end;
  uint32_t buffer;
};

/// The lowest offset at which `size` bytes are free whenever `buffer` is alive.
int64_t lowestGap(ArrayRef<Placed> placed, int64_t base, int64_t size,
                  uint32_t buffer, const plan::Lives &lives) {
  int64_t at = base;
  for (const Placed &other : placed) { // Sorted by begin.
    if (other.end <= at || !lives.meet(other.buffer, buffer))
      continue;
    if (other.begin >= at + size)
      break;
    at = std::max(at, other.end);
  }
  return at;
}

/// One for each microbatch that is under way at once.
void makeCopies(BufferOp buffer, int64_t copies) {
  if (copies == 1)
    return;
  buffer.setCopies(copies);
  buffer.getResult().setType(
      MemRefType::get({aligned(buffer.getSizeBytes()) * copies},
                      cast<MemRefType>(buffer.getType()).getElementType()));
}

struct PlanArenaPass : impl::PlanArenaPassBase<PlanArenaPass> {
  LogicalResult plan(schedule::ProgramOp program) {
    if (program.getBody().getOps<schedule::ActionsOp>().empty())
      return program.emitOpError("has no schedule.actions, which say when "
                                 "lists run; -schedule-lower adds them");
    schedule::PackedProgram tables(program);
    plan::ActionTable actions = plan::tableOf(*tables);
    plan::Lives lives = plan::livesOf(*tables, actions);
    // As the tables number them.
    auto buffers = llvm::to_vector(program.getBody().getOps<BufferOp>());
    for (auto [i, buffer] : llvm::enumerate(buffers))
      makeCopies(buffer, lives.copiesOf(i));
    int64_t base = 0;
    for (uint32_t kind = 0; kind <= schedule::getMaxEnumValForBufferKind();
         ++kind)
      for (BufferOp buffer : buffers)
        if (buffer.getPersistent() &&
            static_cast<uint32_t>(buffer.getKind()) == kind) {
          buffer.setOffset(base);
          base += aligned(buffer.getSizeBytes());
        }
    SmallVector<std::tuple<int64_t, uint32_t>>
        order; // largest first, then as they come
    for (auto [i, buffer] : llvm::enumerate(buffers)) {
      BufferOp op = buffer;
      if (!op.getPersistent())
        order.emplace_back(-op.getSizeBytes(), i);
    }
    llvm::sort(order);
    SmallVector<Placed> placed;
    int64_t end = base;
    for (auto [negativeSize, index] : order) {
      BufferOp buffer = buffers[index];
      int64_t size = aligned(buffer.getSizeBytes());
      int64_t at = lowestGap(placed, base, size, index, lives);
      buffer.setOffset(at);
      auto where = llvm::upper_bound(
          placed, at, [](int64_t a, const Placed &p) { return a < p.begin; });
      placed.insert(where, {at, at + size, index});
      end = std::max(end, at + size);
    }
    program.setArenaBytes(end);
    return success();
  }

  void runOnOperation() override {
    for (auto program : getOperation().getOps<schedule::ProgramOp>())
      if (failed(plan(program)))
        return signalPassFailure();
  }
};
} // namespace
} // namespace meshwork::memory
