// How many columns one innermost body computes. Vectors longer than a register
// are split by LLVM, which is all the unrolling there is: several sums in
// flight, few loop steps. Long bodies gain nothing and run out of registers.
#include "passes/codegen/KernelLoops.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;

int64_t costOf(Operation *op) {
  if (isa<math::ExpOp, math::LogOp>(op))
    return 16;
  if (isa<math::TanhOp, math::ErfOp>(op))
    return 24;
  if (isa<DrawOpInterface>(op))
    return 120;
  return 1;
}

namespace {

/// Ops that computing `value` at one place takes; a value per row is there.
int64_t costAtColumn(const Walk &walk, Value value,
                     llvm::SmallPtrSetImpl<Operation *> &seen) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return 1;
  auto reduce = dyn_cast<ReduceOp>(def);
  if ((reduce && walk.formOf(reduce) == ReduceForm::columns) ||
      !seen.insert(def).second)
    return 0;
  int64_t cost = 0;
  if (auto map = dyn_cast<MapOp>(def))
    map.getBody().walk([&](Operation *op) { cost += costOf(op); });
  for (Value operand : def->getOperands())
    cost += costAtColumn(walk, operand, seen);
  return cost;
}
} // namespace

SmallVector<int64_t> rotationsOf(const Walk &walk) {
  DenseMap<Value, llvm::SmallSetVector<int64_t, 4>>
      below; // of operands that a value reads
  auto of = [&](Value value) {
    auto known = below.find(value);
    llvm::SmallSetVector<int64_t, 4> zero;
    zero.insert(0);
    return known == below.end() ? zero : known->second;
  };
  llvm::SmallSetVector<int64_t, 4> all;
  for (Operation &op :
       FusedOp(walk.op).getBody().front().without_terminator()) {
    auto roll = dyn_cast<RollOp>(op);
    llvm::SmallSetVector<int64_t, 4> sums;
    for (Value operand : op.getOperands())
      for (int64_t sum : of(operand))
        sums.insert(roll && roll.getShift()
                        ? (sum + static_cast<int64_t>(roll.getShift())) %
                              walk.cols.back().size
                        : sum);
    for (Value result : op.getResults())
      below[result] = sums;
    all.insert_range(sums);
  }
  SmallVector<int64_t> rotations(
      llvm::make_filter_range(all, [](int64_t sum) { return sum != 0; }));
  llvm::sort(rotations);
  return rotations;
}

SmallVector<int64_t> segmentEnds(const Walk &walk) {
  SmallVector<int64_t> ends;
  if (walk.cols.empty())
    return ends;
  int64_t size = walk.cols.back().size;
  for (int64_t rotation : llvm::reverse(rotationsOf(walk)))
    ends.push_back(size - rotation);
  ends.push_back(size);
  return ends;
}

int64_t chooseWidth(const Walk &walk, const CpuTarget &target,
                    ArrayRef<Value> roots) {
  if (walk.cols.empty())
    return 1;
  llvm::SmallPtrSet<Operation *, 16> seen;
  int64_t cost = 0, length = INT64_MAX, begin = 0, lanes = target.lanes();
  for (Value root : roots)
    cost += costAtColumn(walk, root, seen);
  for (int64_t end : segmentEnds(walk)) {
    length = std::min(length, end - begin);
    begin = end;
  }
  int64_t registers = cost <= 24 ? 4 : cost <= 48 ? 2 : 1;
  // No more than the columns fill, to within a tenth.
  while (registers > 1 && llvm::alignTo(length, lanes * registers) * 10 >
                              llvm::alignTo(length, lanes) * 11)
    registers /= 2;
  int64_t width = lanes * registers;
  while (width > 2 && width / 2 >= length)
    width /= 2;
  return width;
}

} // namespace meshwork::codegen
