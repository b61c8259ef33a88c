// What instructions cost.
#include "passes/schedule/Overlap.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace meshwork::schedule {

double secondsOf(Operation *instruction, int64_t ranks, const Speeds &speeds) {
  auto op = cast<InstructionOpInterface>(instruction);
  auto bytes = static_cast<double>(op.getBytes()),
       flops = static_cast<double>(op.getFlops());
  auto collective = dyn_cast<CollectiveOp>(instruction);
  if (!collective)
    return std::max(flops / speeds.flops, bytes / speeds.memory);
  // A ring's bytes; `bytes` are those of the inputs.
  double others = static_cast<double>(ranks - 1);
  double share = collective.getKind() == CollectiveKind::all_gather ? others
                 : collective.getKind() == CollectiveKind::all_reduce
                     ? 2 * others / static_cast<double>(ranks)
                     : others / static_cast<double>(ranks);
  return speeds.latency + share * bytes / speeds.link;
}

} // namespace meshwork::schedule
