// What instructions cost.
#include "passes/schedule/Overlap.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace meshwork::schedule {

double secondsOf(Operation *instruction,
                 llvm::function_ref<int64_t(CollectiveOp)> ranksOf,
                 const Speeds &speeds) {
  if (auto repeat = dyn_cast<RepeatOp>(instruction)) {
    double once = 0;
    for (Operation &op : repeat.getBody().front())
      once += isInstruction(&op) ? secondsOf(&op, ranksOf, speeds) : 0;
    return once * static_cast<double>(repeat.getTimes());
  }
  auto op = cast<InstructionOpInterface>(instruction);
  auto bytes = static_cast<double>(op.getBytes()),
       flops = static_cast<double>(op.getFlops());
  auto collective = dyn_cast<CollectiveOp>(instruction);
  if (!collective)
    return std::max(flops / speeds.flops, bytes / speeds.memory);
  int64_t ranks = ranksOf(collective);
  // A ring's bytes; `bytes` are those of the inputs.
  double others = static_cast<double>(ranks - 1);
  double share = collective.getKind() == CollectiveKind::all_gather ? others
                 : collective.getKind() == CollectiveKind::all_reduce
                     ? 2 * others / static_cast<double>(ranks)
                     : others / static_cast<double>(ranks);
  return speeds.latency + share * bytes / speeds.link;
}

} // namespace meshwork::schedule
