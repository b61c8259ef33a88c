#include "passes/transform/OneWord.h"

#include "dialects/transformer/Facts.h"
#include "passes/transform/ExpertRound.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
namespace meshwork::transform {
using namespace transformer;

namespace {
/// What the wide form is made of.
class Forward {
public:
  explicit Forward(func::FuncOp microbatch)
      : block(microbatch.getBody().front()) {}

  /// Whether it has a wide form that saves a number.
  bool find();
  Value run();

private:
  bool take(Operation &op);
  void takeSumsOf(ExpertRoundsOp op);
  bool isInside(Operation *op) const {
    return again.contains(block.findAncestorOpInBlock(*op));
  }
  bool isUsedBehind(Value value) const;
  bool isOfWeights(Value value) const;
  bool isStored(Value value) const;

  static ArrayAttr axesOf(RepeatOp wide);
  Value word(RepeatOp wide);
  void findCarried();
  RepeatOp build();
  void cloneInto(RepeatOp repeat);
  void cloneWeights(OpBuilder &builder, Value value, IRMapping &wide);
  void makeBehind(RepeatOp repeat);

  Block &block;
  Operation *head = nullptr;
  SmallVector<ExpertRoundsOp> rounds;
  llvm::SetVector<Operation *> again; // in their order
  llvm::DenseSet<Operation *> sums;   // of first rounds
  SmallVector<Operation *> effects;   // that wait for the word
  llvm::DenseSet<Value> changed;
  SmallVector<Value> carried;     // what the forward pass leaves
  SmallVector<Operation *> views; // and what is made of that once more
};
} // namespace

/// What a further round adds to is made anew, so that it has no other reader.
void Forward::takeSumsOf(ExpertRoundsOp op) {
  rounds.push_back(op);
  for (Value sum : op.getSums())
    if (Operation *maker = sum.getDefiningOp())
      sums.insert(maker);
}

bool Forward::find() {
  for (Operation &op : block) {
    if (isa<StageListOp>(op))
      return false;
    if (isHead(&op)) {
      head = &op;
      break;
    }
    if (auto one = dyn_cast<ExpertRoundsOp>(op))
      takeSumsOf(one);
  }
  if (!head || rounds.size() < 2)
    return false;
  return llvm::all_of(llvm::make_range(block.begin(), head->getIterator()),
                      [&](Operation &op) { return take(op); });
}

/// False where it can neither run twice nor wait.
bool Forward::take(Operation &op) {
  bool isMade = sums.contains(&op) || isa<ExpertRoundsOp>(op) ||
                llvm::any_of(op.getOperands(), [&](Value value) {
                  return changed.contains(value);
                });
  if (!isMade)
    return true;
  if (isa<AccumulateOp, AssignOp>(op)) {
    effects.push_back(&op);
    return true;
  }
  if (!isMemoryEffectFree(&op) && !isa<mesh::CollectiveOpInterface>(op))
    return false;
  again.insert(&op);
  changed.insert(op.result_begin(), op.result_end());
  return true;
}

bool Forward::isUsedBehind(Value value) const {
  return llvm::any_of(value.getUsers(),
                      [&](Operation *user) { return !isInside(user); });
}

/// Whether parameters alone make it, for the forward pass alone: a gather that
/// would else live from the narrow form to the end of the wide one.
bool Forward::isOfWeights(Value value) const {
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
bool Forward::isStored(Value value) const {
  Operation *op = value.getDefiningOp();
  if (isa<SliceOp, SplitOp>(op))
    return false;
  return !isFusible(op) || isKept(op) ||
         llvm::any_of(value.getUsers(), [&](Operation *user) {
           return !isFusible(user) && stateUseOf(user) == StateUse::none;
         });
}

/// From the end, as what is made once more reads what is carried.
void Forward::findCarried() {
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

/// All axes along which ranks meet in the wide form.
ArrayAttr Forward::axesOf(RepeatOp wide) {
  llvm::DenseSet<Attribute> named;
  wide.walk([&](mesh::CollectiveOpInterface one) {
    named.insert(one.getAxes().begin(), one.getAxes().end());
  });
  wide.walk([&](ExpertRoundsOp one) {
    named.insert(one.getExchangeAxes().begin(), one.getExchangeAxes().end());
  });
  auto ordered = llvm::filter_to_vector(
      mesh::meshOf(wide).getNames(),
      [&](Attribute name) { return named.contains(name); });
  return ArrayAttr::get(wide->getContext(),
                        llvm::to_vector_of<Attribute>(ordered));
}

Value Forward::word(RepeatOp wide) {
  ExpertRoundsOp last = rounds.back();
  OpBuilder builder(wide);
  BuiltFor facts(builder, last);
  auto numbers = llvm::map_to_vector(
      rounds, [](ExpertRoundsOp op) -> Value { return op.getLast(); });
  Value any = buildMap(
      builder, last.getLoc(), numbers.front().getType(), numbers,
      [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
        Value most = x.front();
        for (Value one : x.drop_front())
          most = arith::MaxSIOp::create(b, most, one);
        return arith::MinSIOp::create(
            b, most, arith::ConstantOp::create(b, b.getI32IntegerAttr(1)));
      });
  ExchangedOperands of{MixtureOperands(last), Value(), axesOf(wide)};
  BuiltRows built;
  return ExpertRound(builder, last, of, built).largest(any);
}

/// What counts it is made behind, of what it holds.
RepeatOp Forward::build() {
  OpBuilder builder(head);
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
void Forward::cloneWeights(OpBuilder &builder, Value value, IRMapping &wide) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<ParameterOp>(op) || wide.contains(value) ||
      again.contains(op) || !isOfWeights(value))
    return;
  for (Value operand : op->getOperands())
    cloneWeights(builder, operand, wide);
  builder.clone(*op, wide);
}

void Forward::cloneInto(RepeatOp repeat) {
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

/// Readers behind the word, and what is accumulated.
void Forward::makeBehind(RepeatOp repeat) {
  OpBuilder builder(head);
  IRMapping behind;
  behind.map(carried, repeat.getResults());
  for (Operation *op : views)
    builder.clone(*op, behind);
  for (Operation *op : effects)
    op->moveBefore(head);
  for (auto [from, to] : behind.getValueMap())
    Value(from).replaceUsesWithIf(to, [&](OpOperand &use) {
      return repeat->isBeforeInBlock(
          block.findAncestorOpInBlock(*use.getOwner()));
    });
}

Value Forward::run() {
  findCarried();
  RepeatOp wide = build();
  cloneInto(wide);
  makeBehind(wide);
  Value count = word(wide);
  wide.getCountMutable().assign(count);
  for (ExpertRoundsOp op : rounds) {
    op->replaceAllUsesWith(op.getSums());
    op->erase();
  }
  return count;
}

Value runNarrowFirst(func::FuncOp microbatch) {
  Forward forward(microbatch);
  return forward.find() ? forward.run() : Value();
}

} // namespace meshwork::transform
