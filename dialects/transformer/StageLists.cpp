#include "dialects/transformer/StageLists.h"

using namespace mlir;

namespace meshwork::transformer {

StageLists::StageLists(Block &block) {
  StageListOp current;
  for (Operation &op : block) {
    if (auto list = dyn_cast<StageListOp>(op))
      current = list;
    lists[&op] = current;
  }
}

bool StageLists::isThere(Operation *maker, Operation *user) const {
  StageListOp made = of(maker);
  return made == of(user) || !made || made.getKind() != StageList::weight_grad;
}

} // namespace meshwork::transformer
