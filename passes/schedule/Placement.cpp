// Where each value lies, from what uses it.
#include "passes/schedule/Placement.h"
#include "dialects/transformer/Facts.h"

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

LogicalResult Placement::takeOver(Value operand, Value result) {
  FailureOr<Place> place = of(operand);
  if (failed(place))
    return failure();
  if (!operand.hasOneUse() ||
      isa_and_nonnull<StateOp, transformer::ParameterOp, SliceOp>(
          operand.getDefiningOp()))
    return emitError(operand.getLoc()) << "a sum of " << operand.getType()
                                       << " is added to, but has other uses";
  set(result, *place);
  return success();
}

/// Ops that read `value`, or a view of it.
static void addReaders(Value value, SmallVector<Operation *> &readers) {
  for (Operation *user : value.getUsers()) {
    readers.push_back(user);
    if (isa<SliceOp, mesh::SliceOp>(user))
      addReaders(user->getResult(0), readers);
  }
}

void Placement::findReaders(Block &block) {
  readersIn = &block;
  readers.clear();
  for (Operation &op : block) {
    if (auto parameter = dyn_cast<transformer::ParameterOp>(op))
      addReaders(parameter, readers[parameter.getName()]);
    if (auto state = dyn_cast<StateOp>(op))
      addReaders(state, readers[state.getName()]);
  }
}

bool Placement::areReadBefore(AssignOp assign, Operation *maker) {
  Block &block = *assign->getBlock();
  if (!maker || maker->getBlock() != &block)
    return false;
  if (readersIn != &block)
    findReaders(block);
  // States of one parameter may share bytes, as weight and master do in f32.
  return llvm::all_of(readers[assign.getName()], [&](Operation *reader) {
    Operation *inBlock = block.findAncestorOpInBlock(*reader);
    return inBlock == maker || inBlock->isBeforeInBlock(maker) ||
           reader == assign;
  });
}

/// The state that `assign` writes, or its part.
FailureOr<Place> Placement::ofState(AssignOp assign) {
  StateKey key = assign.getKey();
  RankedTensorType type = tensorType(assign.getValue());
  if (!assign.getDim())
    return states.of(key, type);
  for (auto op : assign->getParentOfType<func::FuncOp>().getOps<StateOp>())
    if (op.getKey() == key)
      return partOf(states.of(key, op.getType()), op.getType(),
                    assign.getDimAttr(), assign.getOffset(), type);
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
  if (auto parameter = dyn_cast_or_null<transformer::ParameterOp>(op))
    return states.of({StateKind::weight, parameter.getName()}, type);
  if (auto read = dyn_cast_or_null<StateOp>(op))
    return states.of(read.getKey(), type);
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
