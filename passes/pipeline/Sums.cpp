#include "passes/pipeline/Sums.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipeline {

bool isComputed(Value value) {
  auto op = value.getDefiningOp<TensorOpInterface>();
  return op && op.getStateUse() == StateUse::none && !op.isSource();
}

bool isSum(Operation *op) {
  return isa<MapOp>(op) && op->getNumResults() == 1 &&
         op->getNumOperands() > 0 &&
         cast<RankedTensorType>(op->getResult(0).getType()).getRank() == 0 &&
         llvm::all_of(op->getOperands(), isComputed);
}

bool addsUp(MapOp map) {
  Block &block = map.getBody().front();
  auto adds = [](Operation &op) {
    auto constant = dyn_cast<arith::ConstantOp>(op);
    return isa<arith::AddFOp, YieldOp>(op) ||
           (constant && matchPattern(constant.getResult(), m_AnyZeroFloat()));
  };
  auto isUsedOnce = [](auto value) { return value.hasOneUse(); };
  return isSum(map) && llvm::all_of(block, adds) &&
         llvm::all_of(block.getArguments(), isUsedOnce) &&
         llvm::all_of(block.without_terminator(),
                      [](Operation &op) { return op.hasOneUse(); });
}

void Sum::add(MapOp map) {
  maps.push_back(map);
  for (Value term : map->getOperands()) {
    auto inner = term.getDefiningOp<MapOp>();
    if (inner && inner->hasOneUse() && addsUp(inner))
      add(inner);
    else
      terms.push_back(term);
  }
}

void Sum::replace(ArrayRef<Value> by) {
  ImplicitLocOpBuilder b(maps.front().getLoc(), maps.front());
  maps.front()->getResult(0).replaceAllUsesWith(buildSum(b, by));
  for (MapOp one : maps)
    one.erase();
}

} // namespace meshwork::pipeline
