#include "passes/transform/WideForm.h"

#include "dialects/transformer/Facts.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

/// What a further round adds to is made anew, so that it has no other reader.
void WideForm::takeSumsOf(ExpertRoundsOp op) {
  rounds.push_back(op);
  for (Value sum : op.getSums())
    if (Operation *maker = sum.getDefiningOp())
      sums.insert(maker);
}

bool WideForm::find() {
  auto pass = llvm::make_range(begin->getIterator(), end->getIterator());
  for (Operation &op : pass)
    if (auto one = dyn_cast<ExpertRoundsOp>(op))
      takeSumsOf(one);
  return rounds.size() > 1 &&
         llvm::all_of(pass, [&](Operation &op) { return take(op); });
}

/// False where it can neither run twice nor wait.
bool WideForm::take(Operation &op) {
  bool isMade = sums.contains(&op) || isa<ExpertRoundsOp>(op) ||
                llvm::any_of(op.getOperands(), [&](Value value) {
                  return changed.contains(value);
                });
  if (!isMade)
    return true;
  if (isa<AccumulateOp, AssignOp, mesh::SendOp>(op)) {
    effects.push_back(&op);
    return true;
  }
  if (!isMemoryEffectFree(&op) && !isa<mesh::CollectiveOpInterface>(op))
    return false;
  again.insert(&op);
  changed.insert(op.result_begin(), op.result_end());
  return true;
}

bool WideForm::isUsedBehind(Value value) const {
  return llvm::any_of(value.getUsers(),
                      [&](Operation *user) { return !isInside(user); });
}

/// Whether parameters alone make it, for the forward pass alone: a gather that
/// would else live from the narrow form to the end of the wide one.
bool WideForm::isOfWeights(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || isa<ParameterOp>(op))
    return op != nullptr;
  return op->getBlock() == &block && !isOfStep(op) &&
         op->getNumOperands() > 0 && op->getNumRegions() == 0 &&
         (isMemoryEffectFree(op) || isa<mesh::CollectiveOpInterface>(op)) &&
         llvm::none_of(value.getUsers(), isBackward) &&
         llvm::all_of(op->getOperands(),
                      [&](Value from) { return isOfWeights(from); });
}

/// What fusion would have in memory. The rest is computed where it is read.
bool WideForm::isStored(Value value) const {
  Operation *op = value.getDefiningOp();
  if (isa<SliceOp, SplitOp>(op))
    return false;
  return !isFusible(op) || isKept(op) ||
         llvm::any_of(value.getUsers(), [&](Operation *user) {
           return !isFusible(user) && stateUseOf(user) == StateUse::none;
         });
}

/// From the end, as what is made once more reads what is carried.
void WideForm::findCarried() {
  llvm::SetVector<Operation *> once;
  for (Operation *op : llvm::reverse(again))
    for (Value result : op->getResults()) {
      bool isRead = isUsedBehind(result) ||
                    llvm::any_of(result.getUsers(), [&](Operation *user) {
                      return once.contains(user);
                    });
      if (isRead && isStored(result))
        carried.push_back(result);
      else if (isRead)
        once.insert(op);
    }
  llvm::append_range(views, llvm::reverse(once));
}

/// What counts it is made behind, of what it holds.
RepeatOp WideForm::createRepeat() {
  OpBuilder builder(end);
  Location loc = rounds.back().getLoc();
  auto repeat = RepeatOp::create(builder, loc, TypeRange(ValueRange(carried)),
                                 builder.getI64IntegerAttr(1),
                                 builder.getStringAttr("wide"), Value(),
                                 ValueRange(), carried, ValueRange());
  inheritFacts(rounds.back(), repeat);
  Block &body = repeat.getBody().emplaceBlock();
  for (Value value : carried)
    body.addArgument(value.getType(), loc);
  return repeat;
}

/// The op that makes it, and those before.
void WideForm::cloneWeights(OpBuilder &builder, Value value, IRMapping &wide) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<ParameterOp>(op) || wide.contains(value) ||
      again.contains(op) || !isOfWeights(value))
    return;
  for (Value operand : op->getOperands())
    cloneWeights(builder, operand, wide);
  builder.clone(*op, wide);
}

void WideForm::cloneInto(RepeatOp repeat) {
  OpBuilder builder = OpBuilder::atBlockEnd(&repeat.getBody().front());
  IRMapping wide;
  for (Operation *op : again) {
    for (Value operand : op->getOperands())
      cloneWeights(builder, operand, wide);
    builder.clone(*op, wide);
  }
  auto yields = llvm::map_to_vector(
      carried, [&](Value value) { return wide.lookup(value); });
  YieldOp::create(builder, repeat.getLoc(), yields);
  repeat.shareCaptured();
}

/// Readers behind the word, and what is accumulated or sent.
void WideForm::makeBehind(RepeatOp repeat) {
  OpBuilder builder(end);
  IRMapping behind;
  behind.map(carried, repeat.getResults());
  for (Operation *op : views)
    builder.clone(*op, behind);
  for (Operation *op : effects)
    op->moveBefore(end);
  for (auto [from, to] : behind.getValueMap())
    Value(from).replaceUsesWithIf(to, [&](OpOperand &use) {
      return repeat->isBeforeInBlock(
          block.findAncestorOpInBlock(*use.getOwner()));
    });
}

RepeatOp WideForm::build() {
  findCarried();
  RepeatOp repeat = createRepeat();
  cloneInto(repeat);
  makeBehind(repeat);
  return repeat;
}

void WideForm::dropRounds() {
  for (ExpertRoundsOp op : rounds) {
    op->replaceAllUsesWith(op.getSums());
    op->erase();
  }
}

} // namespace meshwork::transform
