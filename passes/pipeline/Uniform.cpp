#include "passes/pipeline/Uniform.h"

using namespace mlir;

namespace meshwork::pipeline {

Uniform::Uniform(func::FuncOp step, StringAttr axis) : axis(axis) {
  for (BlockArgument argument : step.getArguments())
    if (!names(step.getArgAttrDict(argument.getArgNumber())))
      same.insert(argument);
  for (Operation &op : step.getBody().front())
    if (makesSame(&op))
      same.insert(op.result_begin(), op.result_end());
}

/// Anywhere: as the axis of a collective, in the sharding of a parameter. What
/// names it for another reason is taken to differ, which is never wrong.
bool Uniform::names(Attribute attribute) const {
  if (!attribute)
    return false;
  AttrTypeWalker walker;
  walker.addWalk([&](StringAttr text) {
    return mesh::wholeAxis(text.getValue()) == axis.getValue()
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return walker.walk(attribute).wasInterrupted();
}

bool Uniform::makesSame(Operation *op) const {
  auto collective = dyn_cast<mesh::CollectiveOpInterface>(op);
  bool takesSame = llvm::all_of(
      op->getOperands(), [&](Value operand) { return same.contains(operand); });
  if (!takesSame && !collective)
    return false; // Attributes are many, and would not change it.
  bool isOver = false;
  op->walk(
      [&](Operation *inner) { isOver |= names(inner->getAttrDictionary()); });
  if (!isOver)
    return takesSame;
  return collective && collective.getMovement().givesAllTheSame();
}

} // namespace meshwork::pipeline
