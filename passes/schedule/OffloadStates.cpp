// States of the optimizer lie in the host's memory, and the update streams them
// through two windows on the device.
//
// A window holds the states of some instructions that follow each other. While
// one is updated, the next is brought and the one before is put back. That is
// for -schedule-overlap to arrange: copies that touch one window keep their
// order. So nothing here runs beside anything.
#include "mlir/IR/Builders.h"
#include "passes/schedule/HostCopies.h"
#include "passes/schedule/Passes.h"

using namespace mlir;
namespace meshwork::schedule {
#define GEN_PASS_DEF_OFFLOADSTATESPASS
#include "passes/schedule/Passes.h.inc"
namespace {

constexpr int64_t numSlots = 2, alignment = 64;

/// A buffer of states, and when the update uses it: places of instructions.
struct States {
  size_t first = 0, last = 0;
  size_t number = 0; // of the buffer, in the program's order
  bool isWritten = false;
};
using StatesByBuffer = SmallVector<std::pair<BufferOp, States>>;

/// What travels together.
struct Window {
  SmallVector<BufferOp> buffers;
  SmallVector<int64_t> begins; // of each in the window, in bytes
  int64_t bytes = 0;
  size_t first = 0, last = 0; // instructions
  bool isWritten = false;

  void add(BufferOp buffer, const States &states) {
    if (buffers.empty())
      first = states.first;
    last = std::max(last, states.last);
    isWritten |= states.isWritten;
    buffers.push_back(buffer);
    begins.push_back(bytes);
    bytes += llvm::alignTo(buffer.getSizeBytes(), alignment);
  }
};

/// The buffers of a program that hold states of the optimizer and nothing else,
/// and that only instructions of its update use, one after the other.
class Movable {
public:
  explicit Movable(ArrayRef<Operation *> update) {
    for (auto [place, op] : llvm::enumerate(update))
      places[op] = place;
  }

  StatesByBuffer in(ProgramOp program) const {
    StatesByBuffer found;
    for (auto buffer : program.getBody().getOps<BufferOp>())
      if (buffer.getKind() == BufferKind::optimizer && buffer.getPersistent())
        if (std::optional<States> states = usesOf(buffer))
          found.emplace_back(buffer, *states).second.number = found.size();
    llvm::sort(found, [](auto &a, auto &b) {
      return std::pair(a.second.first, a.second.number) <
             std::pair(b.second.first, b.second.number);
    });
    return found;
  }

private:
  /// Nothing of one that stays on the device.
  std::optional<States> usesOf(BufferOp buffer) const {
    States states{SIZE_MAX};
    for (Operation *view : buffer.getResult().getUsers())
      for (OpOperand &use : view->getUses())
        if (!isa<ParameterOp>(use.getOwner()) && !addUse(use, states))
          return std::nullopt;
    return states.first == SIZE_MAX ? std::nullopt : std::optional(states);
  }

  bool addUse(OpOperand &use, States &states) const {
    auto found = places.find(use.getOwner());
    if (found == places.end() || isa<CollectiveOp, RepeatOp>(found->first))
      return false;
    states.first = std::min(states.first, found->second);
    states.last = std::max(states.last, found->second);
    auto op = cast<InstructionOpInterface>(use.getOwner());
    states.isWritten |= use.getOperandNumber() >= op.getReads().size();
    return true;
  }

  llvm::DenseMap<Operation *, size_t> places;
};

/// Windows do not meet: what uses one ends before what uses the next begins.
std::vector<Window> cut(const StatesByBuffer &all, int64_t windowBytes) {
  std::vector<Window> windows;
  for (const auto &[buffer, states] : all) {
    bool isFull = windows.empty() || (windows.back().bytes >= windowBytes &&
                                      windows.back().last < states.first);
    if (isFull)
      windows.emplace_back();
    windows.back().add(buffer, states);
  }
  return windows;
}

/// "states of wte.weight, and 2 more".
std::string nameOf(Window &window) {
  std::string name = ("states of " + window.buffers.front().getName()).str();
  size_t others = window.buffers.size() - 1;
  return others ? name + ", and " + std::to_string(others) + " more" : name;
}

class Streaming {
public:
  Streaming(SmallVector<Operation *> update, std::vector<Window> windows)
      : update(std::move(update)), windows(std::move(windows)),
        builder(this->windows.front().buffers.front()) {}

  void run() {
    makeSlots();
    for (auto [i, window] : llvm::enumerate(windows))
      stream(window, slots[i % numSlots]);
  }

private:
  /// Each as large as the largest window that goes through it.
  void makeSlots() {
    std::array<int64_t, numSlots> sizes{};
    for (auto [i, window] : llvm::enumerate(windows))
      sizes[i % numSlots] = std::max(sizes[i % numSlots], window.bytes);
    for (int64_t size : sizes)
      if (size > 0)
        slots.push_back(
            makeBuffer(builder, windows.front().buffers.front().getLoc(),
                       "window of states", BufferKind::communication, size,
                       /*onHost=*/false, /*persistent=*/false));
  }

  void stream(Window &window, Value slot) {
    std::string name = nameOf(window);
    mlir::Location loc = window.buffers.front().getLoc();
    builder.setInsertionPoint(window.buffers.front());
    Value host =
        makeBuffer(builder, loc, name, BufferKind::optimizer, window.bytes,
                   /*onHost=*/true, /*persistent=*/true);
    for (auto [buffer, begin] : llvm::zip_equal(window.buffers, window.begins))
      move(buffer, begin, host, slot);
    builder.setInsertionPoint(update[window.first]);
    copyBytes(builder, loc, name, window.bytes, host, slot);
    builder.setInsertionPointAfter(update[window.last]);
    if (window.isWritten)
      copyBytes(builder, loc, name, window.bytes, slot, host);
  }

  /// Its views are of the window: what the program says of it in the host's
  /// memory, what instructions use on the device.
  void move(BufferOp buffer, int64_t begin, Value host, Value slot) {
    for (Operation *user :
         llvm::make_early_inc_range(buffer.getResult().getUsers())) {
      auto view = cast<ViewOp>(user);
      for (OpOperand &use : llvm::make_early_inc_range(view->getUses())) {
        builder.setInsertionPoint(use.getOwner());
        use.set(viewLike(builder, view,
                         isa<ParameterOp>(use.getOwner()) ? host : slot,
                         begin));
      }
      view.erase();
    }
    buffer.erase();
  }

  SmallVector<Operation *> update;
  std::vector<Window> windows;
  OpBuilder builder;
  SmallVector<Value> slots;
};

struct OffloadStatesPass : impl::OffloadStatesPassBase<OffloadStatesPass> {
  using OffloadStatesPassBase::OffloadStatesPassBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      ListOp list = listOf(program, ListKind::update);
      if (!list)
        continue;
      SmallVector<Operation *> update;
      for (Operation &op : list.getBody().front())
        if (isInstruction(&op))
          update.push_back(&op);
      StatesByBuffer states = Movable(update).in(program);
      if (!states.empty())
        Streaming(update, cut(states, windowBytes)).run();
    }
  }
};
} // namespace
} // namespace meshwork::schedule
