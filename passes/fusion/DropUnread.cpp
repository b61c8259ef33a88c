// Clusters store what was read when they were formed. Products with epilogues
// and kernels that compute a value again may have left such a result without
// readers.
#include "passes/fusion/Passes.h"
#include "passes/fusion/Remainder.h"

using namespace mlir;
namespace meshwork::fusion {
#define GEN_PASS_DEF_DROPUNREADPASS
#include "passes/fusion/Passes.h.inc"
namespace {
using transformer::FusedOp;

SmallVector<unsigned> readResults(FusedOp cluster) {
  SmallVector<unsigned> read;
  for (OpResult result : cluster->getResults())
    if (!result.use_empty())
      read.push_back(result.getResultNumber());
  return read;
}

struct DropUnreadPass : impl::DropUnreadPassBase<DropUnreadPass> {
  void runOnOperation() override {
    SmallVector<FusedOp> clusters;
    getOperation().walk([&](FusedOp op) { clusters.push_back(op); });
    // Users first: what they do without may be all that read a result.
    for (FusedOp cluster : llvm::reverse(clusters)) {
      SmallVector<unsigned> read = readResults(cluster);
      if (read.size() == cluster.getNumResults())
        continue;
      if (!read.empty())
        rebuild(cluster, remainderOf(cluster, read));
      cluster.erase();
    }
  }
};
} // namespace
} // namespace meshwork::fusion
