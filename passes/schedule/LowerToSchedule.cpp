// From the step on tensors to one program on buffers: lists, order, state.
#include "passes/schedule/LowerToSchedule.h"
#include "dialects/transformer/Facts.h"
#include "passes/analysis/SpecKey.h"
#include "passes/schedule/Passes.h"
#include "llvm/ADT/TypeSwitch.h"
#include <set>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

#define GEN_PASS_DEF_LOWERTOSCHEDULEPASS
#include "passes/schedule/Passes.h.inc"

void Lowering::beginList(ListKind kind, int64_t stage) {
  buckets.flush();
  builder.beginList(kind, stage);
}

/// Ops that stand for views, or for sums that products do in place.
static bool isView(Operation *op) {
  return isa<transformer::ParameterOp, StateOp, StepInputOp, SliceOp,
             AccumulateOp, func::ReturnOp>(op);
}

/// One enumeration's words are the other's.
static ListKind kindOf(StageList kind) {
  return *symbolizeListKind(stringifyStageList(kind));
}

LogicalResult Lowering::lower(Operation *op) {
  if (isView(op))
    return success();
  if (auto unslice = dyn_cast<UnsliceOp>(op))
    return lowerUnslice(unslice);
  if (auto list = dyn_cast<StageListOp>(op)) {
    beginList(kindOf(list.getKind()), list.getStage());
    return success();
  }
  if (lowered.contains(op))
    return success();
  copies.begin(op);
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  if (failed(gaps.zeroAround(op)) || failed(lowerInstruction(op)))
    return failure();
  copies.copyBack();
  builder.noteLayer(op, before);
  return success();
}

bool Lowering::isOfStep(Operation *op) const {
  if (transformer::isOfStep(op))
    return true;
  return isa<FusedOp, mesh::AllReduceOp>(op) && op->getNumOperands() != 0 &&
         llvm::all_of(op->getOperands(),
                      [&](Value value) { return ofStep.contains(value); });
}

LogicalResult Lowering::lowerStep(Block &body) {
  OpBuilder::InsertionGuard guard(builder);
  builder.toEndOf(builder.step);
  for (Operation &op : body)
    if (isOfStep(&op) && failed(lowerAtStepStart(&op)))
      return failure();
  buckets.flush();
  copies.forget();
  return success();
}

/// Copies of weights are weights. What only the list `step` reads, as maxima of
/// parts, is gone behind it.
Place Lowering::placeOfStep(Value value) {
  auto type = tensorType(value);
  if (llvm::all_of(value.getUsers(),
                   [](Operation *op) { return transformer::isOfStep(op); }))
    return placement.temporary(value);
  return type.getRank() > 0 && transformer::isOfStep(value.getDefiningOp())
             ? placement.copyOfWeight(value)
             : placement.persistent("of the step", BufferKind::results,
                                    type.getShape(), type.getElementType());
}

/// What is there when a step begins: weights, what the step has made of them,
/// and numbers of a rank's part.
LogicalResult Lowering::findForStep(Operation *user, Value operand) {
  Operation *source = operand.getDefiningOp();
  if (ofStep.contains(operand) ||
      isa_and_nonnull<transformer::ParameterOp>(source))
    return success();
  if (PartInputs::isOne(source)) {
    lowered.insert(source);
    inputs.place(source);
    return success();
  }
  InFlightDiagnostic error =
      user->emitOpError("is of the step (transformer.of_step) but reads what "
                        "each microbatch makes; expected parameters and what "
                        "the step makes of them");
  error.attachNote(operand.getLoc()) << "made here";
  return error;
}

LogicalResult Lowering::lowerAtStepStart(Operation *op) {
  lowered.insert(op);
  for (Value operand : op->getOperands())
    if (failed(findForStep(op, operand)))
      return failure();
  for (Value result : op->getResults()) {
    placement.set(result, placeOfStep(result));
    ofStep.insert(result);
  }
  copies.begin(op);
  if (failed(lowerInstruction(op)))
    return failure();
  copies.copyBack();
  return success();
}

LogicalResult Lowering::lowerInstruction(Operation *op) {
  if (auto slice = dyn_cast<mesh::SliceOp>(op))
    return lowerSlice(slice);
  if (auto collective = dyn_cast<mesh::CollectiveOpInterface>(op))
    return buckets.add(collective);
  if (PartInputs::isOne(op)) {
    inputs.place(op);
    return success();
  }
  if (!isa<AssignOp>(op))
    buckets.flush(); // It may need what the bucket brings.
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](mesh::SendOp op) { return lowerSend(op); })
      .Case([&](mesh::ReceiveOp op) { return lowerReceive(op); })
      .Case([&](FusedOp op) { return lowerFused(op); })
      .Case([&](transformer::RepeatOp op) { return lowerRepeat(op); })
      .Case<ContractOp, ProductOp>(
          [&](auto op) { return lowerProduct(*productOf(op)); })
      .Case([&](transformer::AttentionOp op) { return lowerAttention(op); })
      .Case([&](transformer::AttentionGradOp op) {
        return lowerAttentionGrad(op);
      })
      .Case([&](transformer::EmbeddingOp op) { return lowerEmbedding(op); })
      .Case([&](transformer::EmbeddingGradOp op) {
        return lowerEmbeddingGrad(op);
      })
      .Case([&](transformer::RotaryTableOp op) { return lowerRotaryTable(op); })
      .Case([&](AssignOp op) { return lowerAssign(op); })
      .Default([](Operation *op) {
        return op->emitOpError(
            "has no instruction; the passes before -schedule-lower remove it");
      });
}

/// Where the list `backward` begins: at the head, which makes the loss and its
/// gradient together; without one at the first gradient.
static Operation *firstOfBackward(func::FuncOp function) {
  Operation *gradient = nullptr;
  for (Operation &op : function.getBody().front()) {
    if (isHead(&op))
      return &op;
    if (!gradient && isBackward(&op) && !isView(&op))
      gradient = &op;
  }
  return gradient;
}

LogicalResult Lowering::lowerMicrobatch(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (!argument.use_empty())
      placement.set(argument, placement.persistent(
                                  inputOf(argument), BufferKind::input,
                                  tensorType(argument).getShape(),
                                  tensorType(argument).getElementType()));
  for (BlockArgument argument : function.getArguments())
    if (inputOf(argument) == "target_counts")
      ofStep.insert(argument);
  for (auto state : function.getOps<StateOp>())
    if (state.getKind() == StateKind::optimizer) // The update alone writes it.
      ofStep.insert(state);
  sums.start(function);
  groupCollectives(function.getBody().front());
  function.walk(
      [](transformer::RepeatOp op) { groupCollectives(op.getBody().front()); });
  Block &body = function.getBody().front();
  if (failed(lowerStep(body)))
    return failure();
  auto stages = body.getOps<StageListOp>();
  StageListOp firstOfStages = stages.empty() ? nullptr : *stages.begin();
  Operation *head = firstOfStages ? nullptr : firstOfBackward(function);
  // What was moved in front of all, as it waits for nothing, is of that list.
  if (firstOfStages)
    beginList(kindOf(firstOfStages.getKind()), firstOfStages.getStage());
  else
    beginList(ListKind::forward);
  for (Operation &op : body) {
    if (&op == firstOfStages)
      continue;
    if (&op == head)
      beginList(ListKind::backward);
    if (failed(lower(&op)))
      return failure();
  }
  if (!firstOfStages && !head)
    beginList(ListKind::backward);
  buckets.flush();
  return success();
}

LogicalResult Lowering::lowerUpdate(func::FuncOp function) {
  groupCollectives(function.getBody().front());
  beginList(ListKind::update);
  // The loss first: the runtime looks at it before anything is updated.
  llvm::SmallDenseSet<Operation *> ofLoss;
  for (auto op : function.getOps<mesh::CollectiveOpInterface>())
    if (auto state = op->getOperand(0).getDefiningOp<StateOp>();
        state && state.getKind() == StateKind::loss) {
      ofLoss.insert(op);
      if (failed(buckets.add(op)))
        return failure();
    }
  buckets.flush();
  for (Operation &op : function.getBody().front())
    if (!ofLoss.contains(&op) && failed(lower(&op)))
      return failure();
  buckets.flush();
  return success();
}

/// What -transformer-quantize could not know: how a dim that no rule of the
/// spec names is split.
static LogicalResult checkFloat8(ProgramOp program, int64_t unit) {
  bool allFit = true;
  program.walk([&](MatmulOp op) {
    auto lhs = cast<MemRefType>(op.getLhs().getType()),
         rhs = cast<MemRefType>(op.getRhs().getType());
    int64_t sizes[] = {lhs.getDimSize(1), lhs.getDimSize(2), rhs.getDimSize(2)};
    if (op.getScales().empty() ||
        llvm::all_of(sizes, [&](int64_t size) { return size % unit == 0; }))
      return;
    allFit = false;
    emitError(analysis::ofSpec("precision.matmul", op.getLoc()))
        << "product '" << op.getSource() << "' of " << sizes[0] << " x "
        << sizes[1] << " by " << sizes[2]
        << " on a rank has FP8 operands, expected multiples of " << unit
        << "; split other dims, or set precision.matmul to "
           "\"compute\"";
  });
  return success(allFit);
}

static bool isInput(BlockArgument argument) {
  return symbolizeInputKind(inputOf(argument)).has_value();
}

namespace {
struct LowerToSchedulePass
    : impl::LowerToSchedulePassBase<LowerToSchedulePass> {
  using LowerToSchedulePassBase::LowerToSchedulePassBase;

  void runOnOperation() override {
    SmallVector<ModuleOp> ranks(getOperation().getOps<ModuleOp>());
    bool isPipeline = !ranks.empty();
    if (!isPipeline)
      ranks = {getOperation()};
    Kernels kernels(getOperation());
    auto builder = OpBuilder::atBlockBegin(getOperation().getBody());
    for (auto [rank, module] : llvm::enumerate(ranks)) {
      auto program = ProgramOp::create(
          builder, module.getLoc(),
          isPipeline ? "rank" + std::to_string(rank) : "rank",
          isPipeline ? builder.getStringAttr(axis) : StringAttr(),
          IntegerAttr());
      program.getBody().emplaceBlock();
      if (failed(lower(module, program, kernels)))
        return signalPassFailure();
      OpBuilder atEnd(&getContext());
      createActions(atEnd, program, module);
    }
    if (isPipeline)
      for (ModuleOp module : ranks)
        module.erase();
  }

private:
  LogicalResult lower(ModuleOp module, ProgramOp program, Kernels &kernels) {
    auto microbatch = module.lookupSymbol<func::FuncOp>("microbatch"),
         update = module.lookupSymbol<func::FuncOp>("update");
    if (!microbatch || !update || microbatch.getNumArguments() < 2 ||
        !llvm::all_of(microbatch.getArguments(), isInput))
      return module.emitError()
             << "expected functions @microbatch of tokens, targets and what "
                "else the launcher gives, and @update";
    Lowering lowering(module, program, kernels, bucketBytes, rowBytes,
                      reductionOrder == spec::ReductionOrder::any);
    if (failed(lowering.lowerMicrobatch(microbatch)) ||
        failed(lowering.lowerUpdate(update)) ||
        failed(lowering.describeState(microbatch)) ||
        (float8Unit > 0 && failed(checkFloat8(program, float8Unit))))
      return failure();
    microbatch.erase();
    update.erase();
    return success();
  }
};
} // namespace
} // namespace meshwork::schedule
