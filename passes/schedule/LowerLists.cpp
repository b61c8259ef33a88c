// The order of lists: what of @microbatch and @update goes into which.
#include "dialects/transformer/Facts.h"
#include "passes/schedule/Lowering.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

/// Where the list `backward` begins: at the head, which makes the loss and its
/// gradient together; without one at the first gradient.
static Operation *firstOfBackward(func::FuncOp function) {
  Operation *gradient = nullptr;
  for (Operation &op : function.getBody().front()) {
    if (isHead(&op))
      return &op;
    if (!gradient && isBackward(&op) && hasInstruction(&op))
      gradient = &op;
  }
  return gradient;
}

/// One enumeration's words are the other's.
static void begin(StageListOp list, Lowering &to) {
  to.beginList(*symbolizeListKind(stringifyStageList(list.getKind())),
               list.getStage());
}

static void placeArguments(func::FuncOp function, Placement &placement) {
  for (BlockArgument argument : function.getArguments())
    if (auto type = tensorType(argument); !argument.use_empty())
      placement.set(argument, placement.buffers.persistent(
                                  inputOf(argument), BufferKind::input,
                                  type.getShape(), type.getElementType()));
}

/// The lists of stages, which are marked in the body.
static LogicalResult lowerStages(Block &body, StageListOp first,
                                 const llvm::DenseSet<Operation *> &done,
                                 Lowering &to) {
  // What was moved in front of all, as it waits for nothing, is of that list.
  begin(first, to);
  for (Operation &op : body) {
    if (&op == first || done.contains(&op))
      continue;
    if (auto list = dyn_cast<StageListOp>(op))
      begin(list, to);
    else if (failed(lower(&op, to)))
      return failure();
  }
  return success();
}

/// `forward` and `backward`.
static LogicalResult lowerPasses(func::FuncOp function,
                                 const llvm::DenseSet<Operation *> &done,
                                 Lowering &to) {
  Operation *head = firstOfBackward(function);
  to.beginList(ListKind::forward);
  for (Operation &op : function.getBody().front()) {
    if (&op == head)
      to.beginList(ListKind::backward);
    if (!done.contains(&op) && failed(lower(&op, to)))
      return failure();
  }
  if (!head)
    to.beginList(ListKind::backward);
  return success();
}

LogicalResult lowerMicrobatch(func::FuncOp function, Lowering &to) {
  placeArguments(function, to.placement);
  to.sums.start(function);
  Block &body = function.getBody().front();
  groupCollectives(body);
  function.walk(
      [](transformer::RepeatOp op) { groupCollectives(op.getBody().front()); });
  FailureOr<llvm::DenseSet<Operation *>> done = lowerStep(function, to);
  if (failed(done))
    return failure();
  auto stages = body.getOps<StageListOp>();
  if (failed(stages.empty() ? lowerPasses(function, *done, to)
                            : lowerStages(body, *stages.begin(), *done, to)))
    return failure();
  to.buckets.flush();
  return success();
}

/// The loss first: the runtime looks at it before anything is updated.
LogicalResult lowerUpdate(func::FuncOp function, Lowering &to) {
  groupCollectives(function.getBody().front());
  to.beginList(ListKind::update);
  llvm::SmallDenseSet<Operation *> ofLoss;
  for (auto op : function.getOps<mesh::CollectiveOpInterface>())
    if (auto state = op->getOperand(0).getDefiningOp<StateOp>();
        state && (state.getKind() == StateKind::loss ||
                  state.getKind() == StateKind::metric)) {
      ofLoss.insert(op);
      if (failed(to.buckets.add(op)))
        return failure();
    }
  to.buckets.flush();
  for (Operation &op : function.getBody().front())
    if (!ofLoss.contains(&op) && failed(lower(&op, to)))
      return failure();
  to.buckets.flush();
  return success();
}

} // namespace meshwork::schedule
