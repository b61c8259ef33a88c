// One arena: every buffer has an offset at compile time. Largest first into
// the lowest free gap (Pisarchyk and Lee, arXiv 2001.03288, greedy by size).
#include "passes/memory/Liveness.h"
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
  Life life;
};

/// The lowest offset at which `size` bytes are free throughout `life`.
int64_t lowestGap(ArrayRef<Placed> placed, int64_t base, int64_t size,
                  Life life) {
  int64_t at = base;
  for (const Placed &other : placed) { // Sorted by begin.
    if (other.life.last < life.first || life.last < other.life.first)
      continue;
    if (other.begin >= at + size)
      break;
    at = std::max(at, other.end);
  }
  return at;
}

struct PlanArenaPass : impl::PlanArenaPassBase<PlanArenaPass> {
  void plan(schedule::ProgramOp program) {
    auto lives = livesOf(program);
    OpBuilder builder(&getContext());
    int64_t base = 0;
    SmallVector<std::pair<BufferOp, Life>> persistent, temporary;
    for (auto &[buffer, life] : lives)
      (buffer.getPersistent() ? persistent : temporary)
          .emplace_back(buffer, life);
    for (uint32_t kind = 0; kind <= schedule::getMaxEnumValForBufferKind();
         ++kind)
      for (auto &[buffer, life] : persistent)
        if (static_cast<uint32_t>(buffer.getKind()) == kind) {
          buffer.setOffset(base);
          base += aligned(buffer.getSizeBytes());
        }
    SmallVector<std::tuple<int64_t, size_t>>
        order; // largest first, then as they come
    for (auto [i, entry] : llvm::enumerate(temporary))
      order.emplace_back(-entry.first.getSizeBytes(), i);
    llvm::sort(order);
    SmallVector<Placed> placed;
    int64_t end = base;
    for (auto [negativeSize, index] : order) {
      auto &[buffer, life] = temporary[index];
      int64_t size = aligned(buffer.getSizeBytes());
      int64_t at = lowestGap(placed, base, size, life);
      buffer.setOffset(at);
      auto where = llvm::upper_bound(
          placed, at, [](int64_t a, const Placed &p) { return a < p.begin; });
      placed.insert(where, {at, at + size, life});
      end = std::max(end, at + size);
    }
    program.setArenaBytes(end);
  }

  void runOnOperation() override {
    for (auto program : getOperation().getOps<schedule::ProgramOp>())
      plan(program);
  }
};
} // namespace
} // namespace meshwork::memory
