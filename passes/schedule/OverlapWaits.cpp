// Waits for what runs beside the compute: in front of the first instruction
// that touches the same bytes, and at the end of a list.
#include "mlir/IR/Builders.h"
#include "passes/schedule/Overlap.h"
#include <map>

using namespace mlir;
namespace meshwork::schedule {
namespace {

/// What was started on one channel; it finishes in that order.
struct Running {
  SmallVector<InstructionOpInterface> started;
  size_t finished = 0;
};

/// Waits for the first `needed` of a channel, in front of `before` or at the
/// end of the block.
void wait(Block &block, int64_t channel, Running &queue, size_t needed,
          Operation *before) {
  OpBuilder builder =
      before ? OpBuilder(before) : OpBuilder::atBlockEnd(&block);
  SmallVector<Value> views;
  for (; queue.finished < needed; ++queue.finished)
    for (Value operand : queue.started[queue.finished]->getOperands())
      views.push_back(builder.clone(*operand.getDefiningOp())->getResult(0));
  InstructionOpInterface last = queue.started[needed - 1];
  WaitOp::create(builder, last.getLoc(),
                 builder.getStringAttr(last.getSource()),
                 builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(0),
                 builder.getI64IntegerAttr(channel),
                 builder.getI64IntegerAttr(needed), views);
}

/// Where a counted repeat begins nothing is under way, and counts begin anew.
bool beginsAnew(Operation *op) {
  auto repeat = dyn_cast<RepeatOp>(op);
  return repeat && repeat.getCount();
}

/// Copies to the host that are under way at once: nobody waits for what they
/// read to be free, so it would stay until the end of the list.
constexpr size_t mostToHost = 2;

/// Whether it is one of those that `queue` has started.
bool goesToHost(Operation *op, const Running &queue) {
  auto isToHost = [](Operation *one) {
    auto copy = dyn_cast<CopyOp>(one);
    return copy && bufferOf(copy.getDst()).getOnHost();
  };
  return isToHost(op) && !queue.started.empty() &&
         isToHost(queue.started.back());
}

/// How many of the channel must have finished before `op`; 0: none waits.
size_t neededBy(Operation *op, const Running &queue, const Uses &uses) {
  size_t needed = 0;
  if (goesToHost(op, queue) && queue.started.size() >= mostToHost)
    needed = queue.started.size() + 1 - mostToHost;
  for (size_t k = queue.finished; k < queue.started.size(); ++k)
    if (uses.conflict(queue.started[k], op))
      needed = k + 1;
  return needed;
}
} // namespace

void insertWaits(Block &block, const Uses &uses,
                 ArrayRef<Operation *> instructions) {
  std::map<int64_t, Running> running; // by channel
  for (Operation *op : instructions) {
    bool isGate = beginsAnew(op);
    for (auto &[channel, queue] : running)
      if (size_t needed =
              isGate ? queue.started.size() : neededBy(op, queue, uses);
          needed > queue.finished)
        wait(block, channel, queue, needed, op);
    if (isGate)
      running.clear();
    auto instruction = cast<InstructionOpInterface>(op);
    if (uint64_t channel = instruction.startsOn())
      running[static_cast<int64_t>(channel)].started.push_back(instruction);
  }
  for (auto &[channel, queue] : running)
    if (queue.finished < queue.started.size())
      wait(block, channel, queue, queue.started.size(), nullptr);
}

} // namespace meshwork::schedule
