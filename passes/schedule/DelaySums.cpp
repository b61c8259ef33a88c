// Each norm and each bias of a layer ends in a small launch that adds chunks to
// a gradient. Nothing reads a gradient before the layer is done, so such a
// launch waits for the others of its layer: one launch of all fills a GPU.
#include "passes/schedule/DelaySums.h"

#include "dialects/transformer/Facts.h"

using namespace mlir;

namespace meshwork::schedule {
namespace {

class Delay {
public:
  Delay(Block &block, int64_t maxHeldBytes)
      : block(block), maxHeldBytes(maxHeldBytes) {}

  void wait(LaunchOp sum, ArrayRef<Use> uses) {
    int64_t bytes = passingBytes(uses);
    if (bytes > maxHeldBytes)
      return;
    if (!waiting.empty() &&
        (transformer::layerOf(sum) != transformer::layerOf(waiting.front()) ||
         heldBytes + bytes > maxHeldBytes))
      end(sum);
    waiting.push_back(sum);
    llvm::append_range(touched, uses);
    heldBytes += bytes;
  }

  bool conflicts(ArrayRef<Use> uses) const {
    return llvm::any_of(uses, [&](const Use &use) {
      return llvm::any_of(
          touched, [&](const Use &other) { return use.conflicts(other); });
    });
  }

  /// All that wait run in front of `before`, or at the end of the block.
  void end(Operation *before) {
    for (Operation *op : waiting)
      moveInstruction(op, &block, before);
    waiting.clear();
    touched.clear();
    heldBytes = 0;
  }

private:
  Block &block;
  int64_t maxHeldBytes;
  SmallVector<Operation *> waiting;
  SmallVector<Use> touched; // by those that wait
  int64_t heldBytes = 0;
};

/// Gradients do; results too, but the update looks at these as soon as it can.
bool staysInMemory(ArrayRef<Use> uses) {
  return llvm::all_of(uses, [](const Use &use) {
    BufferOp buffer = use.buffer;
    return !use.isWritten ||
           (buffer.getPersistent() && buffer.getKind() != BufferKind::results);
  });
}
} // namespace

void delaySums(Block &block, const Uses &uses, int64_t maxHeldBytes,
               llvm::function_ref<bool(LaunchOp)> addsChunks) {
  Delay delay(block, maxHeldBytes);
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isInstruction(&op))
      continue;
    if (delay.conflicts(uses[&op]))
      delay.end(&op);
    auto launch = dyn_cast<LaunchOp>(op);
    if (launch && staysInMemory(uses[&op]) && addsChunks(launch))
      delay.wait(launch, uses[&op]);
  }
  delay.end(nullptr);
}

} // namespace meshwork::schedule
