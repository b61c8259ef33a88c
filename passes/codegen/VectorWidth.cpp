// How many columns one innermost body computes. Vectors longer than a register
// are split by LLVM, which is all the unrolling there is: several sums in
// flight, few loop steps. Long bodies gain nothing and run out of registers.
#include "passes/codegen/KernelLoops.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

/// Instructions of one op, roughly.
static int64_t costOf(Operation *op) {
  if (isa<math::ExpOp, math::LogOp>(op))
    return 16;
  if (isa<math::TanhOp, math::ErfOp>(op))
    return 24;
  if (isa<DropoutMaskOp>(op))
    return 120;
  return 1;
}

int64_t chooseWidth(const Walk &walk, const CpuTarget &target) {
  if (walk.cols.empty())
    return 1;
  int64_t cost = 0;
  FusedOp(walk.op).getBody().walk([&](Operation *op) { cost += costOf(op); });
  int64_t length = walk.cols.back().size, lanes = target.lanes();
  for (int64_t cut : rotationsOf(walk))
    length = std::min({length, cut, walk.cols.back().size - cut});
  int64_t registers = cost <= 24 ? 4 : cost <= 48 ? 2 : 1;
  // No more than the columns fill, to within a tenth.
  while (registers > 1 && llvm::alignTo(length, lanes * registers) * 10 > llvm::alignTo(length, lanes) * 11)
    registers /= 2;
  int64_t width = lanes * registers;
  while (width > 2 && width / 2 >= length)
    width /= 2;
  return width;
}

} // namespace meshwork::codegen
