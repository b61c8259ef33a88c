// Where each value lies, from what uses it.
#include "passes/schedule/Placement.h"
#include "dialects/transformer/Facts.h"
#include "passes/schedule/LoweringModels.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

int64_t Placement::groupSize(ArrayAttr axes) const {
  return mesh.product(llvm::to_vector(axes.getAsRange<StringAttr>()));
}

FailureOr<Place> Placement::of(Value value) {
  if (auto known = places.find(value); known != places.end())
    return known->second;
  FailureOr<Place> place = find(value);
  if (succeeded(place))
    places[value] = *place;
  return place;
}

/// Whether all that read `value`, or a view of it, stand in front of `op` or
/// are `op` or `assign`.
static bool isReadBefore(Value value, Operation *op, Operation *assign) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
    bool isEarly =
        user == assign || inBlock == op || inBlock->isBeforeInBlock(op);
    return isEarly && (!isViewOfOperand(user) ||
                       isReadBefore(user->getResult(0), op, assign));
  });
}

/// Whether `value` is free from `op` on, which uses it once.
static bool isReadBefore(Value value, Operation *op) {
  auto uses = llvm::count_if(value.getUsers(),
                             [&](Operation *user) { return user == op; });
  return value.hasOneUse() || (uses == 1 && value.getDefiningOp() &&
                               isReadBefore(value, op, /*assign=*/nullptr));
}

LogicalResult Placement::takeOver(Value operand, Value result) {
  FailureOr<Place> place = of(operand);
  if (failed(place))
    return failure();
  Operation *maker = operand.getDefiningOp(),
            *taker = result.getParentBlock()->getParentOp();
  bool isCarried =
      isa<transformer::RepeatOp>(taker) && isa<BlockArgument>(result);
  bool isFree = isCarried ? isReadBefore(operand, taker) : operand.hasOneUse();
  if (!isFree || (maker && stateUseOf(maker) == StateUse::reads) ||
      isa_and_nonnull<SliceOp, SplitOp>(maker))
    return emitError(operand.getLoc()) << "a sum of " << operand.getType()
                                       << " is added to, but has other uses";
  set(result, *place);
  return success();
}

void Placement::findUses(Block &block) {
  if (usesIn == &block)
    return;
  usesIn = &block;
  reads.clear();
  assigns.clear();
  for (Operation &op : block) {
    StateUse use = stateUseOf(&op);
    if (use == StateUse::reads)
      reads[usedStateOf(&op)->name].push_back(&op);
    if (use == StateUse::writes)
      assigns[usedStateOf(&op)->name].push_back(&op);
  }
}

/// Weight and master may share bytes: in f32 they are one.
static bool mayShareBytes(const StateKey &a, const StateKey &b) {
  auto isWeight = [](const StateKey &key) {
    return key.kind == StateKind::weight || key.kind == StateKind::master;
  };
  return a == b || (isWeight(a) && isWeight(b));
}

bool Placement::areReadBefore(AssignOp assign, Operation *maker) {
  Block &block = *assign->getBlock();
  if (!maker || maker->getBlock() != &block)
    return false;
  findUses(block);
  // What is read behind `assign` is the new content.
  return llvm::all_of(reads[assign.getName()], [&](Operation *read) {
    return assign->isBeforeInBlock(read) ||
           !mayShareBytes(*usedStateOf(read), assign.getKey()) ||
           isReadBefore(read->getResult(0), maker, assign);
  });
}

/// What a later step finds: of others each step makes its own.
static bool outlivesStep(const StateKey &key) {
  return key.kind == StateKind::weight || key.kind == StateKind::master ||
         key.kind == StateKind::optimizer;
}

Place Placement::read(Operation *op) {
  StateKey key = *usedStateOf(op);
  Place place = states.of(key, tensorType(op->getResult(0)));
  findUses(*op->getBlock());
  place.updated = outlivesStep(key) &&
                  llvm::any_of(assigns[key.name], [&](Operation *assign) {
                    return mayShareBytes(key, *usedStateOf(assign)) &&
                           assign->isBeforeInBlock(op);
                  });
  return place;
}

FailureOr<Place> Placement::ofState(AssignOp assign) {
  StateKey key = assign.getKey();
  RankedTensorType type = tensorType(assign.getValue());
  auto updated = [&](Place place) {
    place.updated = outlivesStep(key);
    return place;
  };
  if (!assign.getDim())
    return updated(states.of(key, type));
  for (auto op : assign->getParentOfType<func::FuncOp>().getOps<StateOp>())
    if (op.getKey() == key)
      return updated(partOf(states.of(key, op.getType()), op.getType(),
                            assign.getDimAttr(), assign.getOffset(), type));
  return assign.emitOpError("writes part of a state that nothing here reads");
}

/// Blocks that are gathered into a state are made where they go.
FailureOr<Place> Placement::gathered(mesh::AllGatherOp gather) {
  auto whole = tensorType(gather.getResult()),
       part = tensorType(gather.getInput());
  int64_t dim = gather.getDim(), size = part.getDimSize(dim);
  bool isAssigned = llvm::any_of(gather->getUsers(), llvm::IsaPred<AssignOp>);
  if (!isAssigned ||
      whole.getDimSize(dim) != size * groupSize(gather.getAxes()))
    return failure();
  FailureOr<Place> place = of(gather.getResult());
  if (failed(place))
    return failure();
  return blockOf(*place, dim, size, gather.getAxes());
}

FailureOr<Place> Placement::yielded(Value value, transformer::RepeatOp repeat) {
  for (auto [yield, result] :
       llvm::zip_equal(repeat.joinedYields(), repeat.joinedResults()))
    if (yield == value) {
      FailureOr<Place> whole = of(result);
      if (failed(whole))
        return failure();
      return turnOf(*whole, tensorType(result), repeat);
    }
  for (auto [yield, result] :
       llvm::zip_equal(repeat.carriedYields(), repeat.carriedResults()))
    if (yield == value)
      return of(result);
  llvm_unreachable("it is yielded");
}

FailureOr<Place> Placement::find(Value value) {
  auto type = tensorType(value);
  Operation *op = value.getDefiningOp();
  if (auto slice = dyn_cast_or_null<SliceOp>(op)) {
    FailureOr<Place> whole = of(slice.getInput());
    if (failed(whole))
      return failure();
    return partOf(*whole, tensorType(slice.getInput()), slice.getDimAttr(),
                  slice.getOffset(), type);
  }
  if (auto split = dyn_cast_or_null<SplitOp>(op)) {
    FailureOr<Place> whole = of(split.getInput());
    if (failed(whole))
      return failure();
    return splitOf(*whole, tensorType(split.getInput()), split.getDimAttr(),
                   type);
  }
  if (auto merge = dyn_cast_or_null<MergeOp>(op); merge && merge.getGradient())
    return buffers.reducedGradient(type);
  if (stateUseOf(op) == StateUse::reads)
    return read(op);
  if (auto input = dyn_cast_or_null<StepInputOp>(op))
    return states.stepInput(input);
  for (Operation *user : value.getUsers()) {
    if (auto gather = dyn_cast<mesh::AllGatherOp>(user)) {
      FailureOr<Place> block = gathered(gather);
      if (succeeded(block))
        return block;
    }
    if (auto assign = dyn_cast<AssignOp>(user);
        assign && areReadBefore(assign, op))
      return ofState(assign);
    if (isa<YieldOp>(user))
      return yielded(value, cast<transformer::RepeatOp>(user->getParentOp()));
    if (auto merge = dyn_cast<MergeOp>(user)) {
      FailureOr<Place> whole = of(merge.getResult());
      if (failed(whole))
        return failure();
      return splitOf(*whole, merge.getType(), merge.getDimAttr(), type);
    }
    auto unslice = dyn_cast<UnsliceOp>(user);
    if (!unslice)
      continue;
    FailureOr<Place> whole = of(unslice.getResult());
    if (failed(whole))
      return failure();
    for (auto [candidate, offset] :
         llvm::zip_equal(unslice.getParts(), unslice.getOffsets()))
      if (candidate == value)
        return partOf(*whole, tensorType(unslice.getResult()),
                      unslice.getDimAttr(), offset, type);
  }
  if (auto gather = dyn_cast_or_null<mesh::AllGatherOp>(op);
      gather && gather.getInput().getDefiningOp() &&
      (isa<transformer::ParameterOp>(gather.getInput().getDefiningOp()) ||
       isOfStep(gather.getInput().getDefiningOp())))
    return buffers.gathered(value);
  return buffers.temporary(value);
}

} // namespace meshwork::schedule
