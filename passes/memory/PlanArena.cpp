// Every buffer has an offset in its arena at compile time. Largest first into
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
    if (other.begin >= at + size)
      break; // So do all behind it, whenever they live.
    if (other.end <= at || !lives.meet(other.buffer, buffer))
      continue;
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

/// One arena of a program: the device's, or the host's.
class Arena {
public:
  /// `buffers` as the tables number them, `lives` by these numbers.
  Arena(ArrayRef<BufferOp> buffers, const plan::Lives &lives, bool onHost)
      : buffers(buffers), lives(lives), onHost(onHost) {}

  /// Its size: every buffer of it has its offset then.
  int64_t place() {
    placePersistent();
    int64_t base = end;
    for (uint32_t index : largestFirst())
      placeOne(index, base);
    return end;
  }

private:
  bool holds(BufferOp buffer) const { return buffer.getOnHost() == onHost; }

  /// Side by side, by what they are for.
  void placePersistent() {
    for (uint32_t kind = 0; kind <= schedule::getMaxEnumValForBufferKind();
         ++kind)
      for (BufferOp buffer : buffers)
        if (holds(buffer) && buffer.getPersistent() &&
            static_cast<uint32_t>(buffer.getKind()) == kind) {
          buffer.setOffset(end);
          end += aligned(buffer.getSizeBytes());
        }
  }

  /// The others; of one size as they come.
  SmallVector<uint32_t> largestFirst() const {
    SmallVector<std::tuple<int64_t, uint32_t>> order;
    for (auto [i, buffer] : llvm::enumerate(buffers))
      if (BufferOp op = buffer; holds(op) && !op.getPersistent())
        order.emplace_back(-op.getSizeBytes(), i);
    llvm::sort(order);
    return llvm::map_to_vector(order,
                               [](auto one) { return std::get<1>(one); });
  }

  void placeOne(uint32_t index, int64_t base) {
    BufferOp buffer = buffers[index];
    int64_t size = aligned(buffer.getSizeBytes());
    int64_t at = lowestGap(placed, base, size, index, lives);
    buffer.setOffset(at);
    auto where = llvm::upper_bound(
        placed, at, [](int64_t a, const Placed &p) { return a < p.begin; });
    placed.insert(where, {at, at + size, index});
    end = std::max(end, at + size);
  }

  ArrayRef<BufferOp> buffers;
  const plan::Lives &lives;
  const bool onHost;
  SmallVector<Placed> placed; // sorted by begin
  int64_t end = 0;
};

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
    program.setArenaBytes(Arena(buffers, lives, /*onHost=*/false).place());
    if (int64_t bytes = Arena(buffers, lives, /*onHost=*/true).place())
      program.setHostBytes(bytes);
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
