// Walks a function op by op, on one rank or on all ranks of a mesh in step.
#include "passes/interpreter/Interpreter.h"
#include "passes/interpreter/Collectives.h"
#include "passes/interpreter/Frame.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

LogicalResult setArguments(func::FuncOp original, func::FuncOp func,
                           Frame &frame, ArrayRef<Tensor> arguments) {
  if (func.getNumArguments() != arguments.size())
    return original.emitOpError("takes ")
           << func.getNumArguments() << " arguments, found "
           << arguments.size();
  for (auto [i, argument, tensor] :
       llvm::enumerate(func.getArguments(), arguments)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    ArrayRef<int64_t> wanted = type ? type.getShape() : ArrayRef<int64_t>();
    if (wanted != tensor.getShape())
      return original.emitOpError("argument #")
             << i << " has shape " << shapeText(tensor.getShape())
             << ", expected " << shapeText(wanted);
    frame.set(argument, tensor);
  }
  return success();
}

/// What holds whatever the values: known sizes, one block.
LogicalResult checkFunction(func::FuncOp func) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return func.emitOpError(
        "cannot be interpreted: expected a body of one block");
  if (failed(checkTypes(func, func.getArgumentTypes())))
    return failure();
  // Before model ops are decomposed, since norms count elements.
  WalkResult sizes = func.walk([](Operation *op) {
    return WalkResult(checkTypes(op, op->getResultTypes()));
  });
  return failure(sizes.wasInterrupted());
}
LogicalResult runBlock(Block &block, mesh::MeshAttr mesh,
                       MutableArrayRef<Frame> frames);

/// Each rank's part of turn `turn`, and what the turn before carried on.
void startTurn(RepeatOp op, int64_t turn, Frame &frame) {
  for (auto [argument, whole] :
       llvm::zip_equal(op.cutArguments(), op.getCut())) {
    int64_t position = dimsOf(argument).find(op.getDimAttr());
    frame.set(argument,
              sliceOf(frame.get(whole), tensorType(argument), position,
                      turn * tensorType(argument).getDimSize(position)));
  }
  Tensors carried = frame.get(op.carriedResults());
  for (auto [argument, tensor] :
       llvm::zip_equal(op.carriedArguments(), carried))
    frame.set(argument, tensor);
  for (auto [argument, whole] :
       llvm::zip_equal(op.sharedArguments(), op.getShared()))
    frame.set(argument, frame.get(whole));
}

void endTurn(RepeatOp op, int64_t turn, Frame &frame) {
  for (auto [whole, part] :
       llvm::zip_equal(op.joinedResults(), op.joinedYields())) {
    int64_t position = dimsOf(part).find(op.getDimAttr());
    Tensor joined =
        turn == 0 ? Tensor::zeros(whole.getType()) : frame.get(whole);
    writeSlice(joined, frame.get(part), position,
               turn * tensorType(part).getDimSize(position));
    frame.set(whole, joined);
  }
  for (auto [result, carried] :
       llvm::zip_equal(op.carriedResults(), op.carriedYields()))
    frame.set(result, frame.get(carried));
}

/// How many turns a rank takes.
FailureOr<int64_t> turnsOf(RepeatOp op, Frame &frame) {
  auto most = static_cast<int64_t>(op.getTimes());
  if (!op.getCount())
    return most;
  double turns = frame.get(op.getCount())[0];
  if (turns >= 0 && turns <= static_cast<double>(most))
    return static_cast<int64_t>(turns);
  return op.emitOpError() << "is to take " << turns << " turns, expected 0 to "
                          << most;
}

/// What is carried and has no turn is as it was.
void startRepeat(RepeatOp op, Frame &frame) {
  for (auto [result, carried] :
       llvm::zip_equal(op.carriedResults(), op.getCarried()))
    frame.set(result, frame.get(carried));
}

/// Ranks that meet in a turn take equally many; of others that take fewer, what
/// more turns make is left. These change no state.
LogicalResult runRepeat(RepeatOp op, mesh::MeshAttr mesh,
                        MutableArrayRef<Frame> frames) {
  SmallVector<int64_t> turns;
  for (Frame &frame : frames) {
    FailureOr<int64_t> own = turnsOf(op, frame);
    if (failed(own))
      return failure();
    turns.push_back(*own);
    startRepeat(op, frame);
  }
  for (int64_t turn = 0; turn < *llvm::max_element(turns); ++turn) {
    for (Frame &frame : frames)
      startTurn(op, turn, frame);
    if (failed(runBlock(op.getBody().front(), mesh, frames)))
      return failure();
    for (auto [frame, own] : llvm::zip_equal(frames, turns))
      if (turn < own)
        endTurn(op, turn, frame);
  }
  return success();
}

LogicalResult runBlock(Block &block, mesh::MeshAttr mesh,
                       MutableArrayRef<Frame> frames) {
  for (Operation &op : block.without_terminator())
    if (failed(evaluate(op, mesh, frames)))
      return failure();
  return success();
}
} // namespace

LogicalResult evaluate(Operation &op, mesh::MeshAttr mesh,
                       MutableArrayRef<Frame> frames) {
  if (auto repeat = dyn_cast<RepeatOp>(op))
    return runRepeat(repeat, mesh, frames);
  if (needsAllRanks(&op))
    return evaluateTogether(&op, mesh, frames);
  for (Frame &frame : frames)
    if (failed(frame.visit(op)))
      return failure();
  return success();
}

void decomposeModelOps(func::FuncOp func) {
  SmallVector<DecomposableOpInterface> modelOps;
  func.walk([&](DecomposableOpInterface op) { modelOps.push_back(op); });
  for (DecomposableOpInterface op : modelOps) {
    OpBuilder builder(op);
    op->getResult(0).replaceAllUsesWith(op.decompose(builder));
    op->erase();
  }
}

std::string StateKey::text() const {
  return (transformer::StateKey{kind, name, slot}.role() + " of \"" + name +
          "\"")
      .str();
}

void Interpreter::startStep() {
  std::erase_if(
      state, [](const auto &entry) { return startsAtZero(entry.first.kind); });
}

FailureOr<SmallVector<Tensor>> Interpreter::run(func::FuncOp func,
                                                ArrayRef<Tensor> arguments) {
  auto results =
      runRanks(func, MutableArrayRef(this, 1), SmallVector<Tensor>(arguments));
  if (failed(results))
    return failure();
  return results->front();
}

FailureOr<SmallVector<Tensor>> evaluateFunction(func::FuncOp func,
                                                ArrayRef<Tensor> arguments) {
  Interpreter none;
  Frame frame(none);
  if (failed(setArguments(func, func, frame, arguments)) ||
      failed(runBlock(func.getBody().front(), {}, frame)))
    return failure();
  return frame.get(func.getBody().front().getTerminator()->getOperands());
}

FailureOr<std::vector<SmallVector<Tensor>>>
runRanks(func::FuncOp func, MutableArrayRef<Interpreter> ranks,
         ArrayRef<SmallVector<Tensor>> arguments) {
  if (failed(checkFunction(func)))
    return failure();
  if (ranks.size() != arguments.size())
    return func.emitOpError("runs on ")
           << ranks.size() << " ranks with arguments for " << arguments.size();
  mesh::MeshAttr mesh = mesh::meshOf(func); // which a copy has not
  OwningOpRef<func::FuncOp> copy = func.clone();
  decomposeModelOps(*copy);
  std::vector<Frame> frames(ranks.begin(), ranks.end());
  for (auto [frame, own] : llvm::zip_equal(frames, arguments))
    if (failed(setArguments(func, *copy, frame, own)))
      return failure();
  Block &body = copy->getBody().front();
  if (failed(runBlock(body, mesh, frames)))
    return failure();
  std::vector<SmallVector<Tensor>> results;
  for (Frame &frame : frames)
    results.push_back(frame.get(body.getTerminator()->getOperands()));
  return results;
}

} // namespace meshwork::interpreter
