// From the step on tensors to one program on buffers: lists, order, state.
#include "passes/schedule/LowerToSchedule.h"
#include "dialects/transformer/Facts.h"
#include "lib/Analysis/SpecKey.h"
#include "lib/Schedules/Generate.h"
#include "passes/schedule/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

#define GEN_PASS_DEF_LOWERTOSCHEDULEPASS
#include "passes/schedule/Passes.h.inc"

Lowering::Lowering(ModuleOp module, ProgramOp program, int64_t bucketBytes,
                   int64_t rowBytes)
    : module(module), program(program), bucketBytes(bucketBytes),
      builder(program.getContext()), placement(program, module, rowBytes),
      kernels(module) {
  module.walk([&](transformer::ParameterOp op) {
    if (auto layer = layerOf(op))
      layers[op.getName()] = *layer;
  });
  builder.setInsertionPointToEnd(&program.getBody().front());
  for (auto [list, kind] :
       {std::pair(&once, ListKind::once), std::pair(&step, ListKind::step),
        std::pair(&forward, ListKind::forward),
        std::pair(&backward, ListKind::backward),
        std::pair(&update, ListKind::update)}) {
    *list = ListOp::create(builder, program.getLoc(), kind, 0);
    list->getBody().emplaceBlock();
  }
}

/// Ops that stand for views, or for sums that products do in place.
static bool isView(Operation *op) {
  return isa<transformer::ParameterOp, StateOp, StepInputOp, SliceOp,
             AccumulateOp, func::ReturnOp>(op);
}

LogicalResult Lowering::lower(Operation *op) {
  if (isView(op))
    return success();
  if (auto unslice = dyn_cast<UnsliceOp>(op))
    return lowerUnslice(unslice);
  current = op;
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  if (failed(zeroAround(op)) || failed(lowerInstruction(op)))
    return failure();
  copyBack();
  noteLayer(op, before);
  return success();
}

LogicalResult Lowering::lowerInstruction(Operation *op) {
  if (auto collective = dyn_cast<mesh::CollectiveOpInterface>(op))
    return lowerCollective(collective);
  if (isa<mesh::CoordinateOp, mesh::ExtentOp, mesh::PositionsOp>(op))
    return lowerNumberOfPart(op);
  if (!isa<AssignOp>(op))
    flush(); // It may need what the bucket brings.
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
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

void Lowering::zeroAtStepStart(const Place &place, const Twine &what) {
  OpBuilder atStep = OpBuilder::atBlockEnd(&step.getBody().front());
  Place flat = place;
  int64_t elements = 1;
  for (int64_t size : place.shape)
    elements *= size;
  flat.shape = {elements};
  flat.strides = {1};
  Value view = Placement::view(atStep, program.getLoc(), flat);
  uint64_t bytes = elements * (place.element.getIntOrFloatBitWidth() / 8);
  FillOp::create(atStep, program.getLoc(), atStep.getStringAttr(what), i64(0),
                 i64(bytes), atStep.getF32FloatAttr(0), view);
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
  constexpr StringRef names[] = {"tokens", "targets", "documents"};
  for (auto [argument, name] : llvm::zip(function.getArguments(), names))
    placement.set(argument,
                  placement.persistent(name, BufferKind::input,
                                       tensorType(argument).getShape(),
                                       builder.getI32Type()));
  // State that something other than a first product adds to must start at zero.
  function.walk([&](StateOp state) {
    StateKey key = state.getKey();
    if ((key.kind == StateKind::gradient || key.kind == StateKind::loss) &&
        zeroed.insert(key).second)
      zeroAtStepStart(placement.state(key, state.getType()),
                      "zero " + key.role() + " " + key.name);
  });
  function.walk([&](AccumulateOp op) {
    StateKey key = op.getKey();
    if (!isa_and_nonnull<ContractOp, ProductOp>(
            op.getValue().getDefiningOp()) &&
        zeroed.insert(key).second)
      zeroAtStepStart(placement.state(key, tensorType(op.getValue())),
                      "zero " + key.role() + " " + key.name);
  });
  groupCollectives(function.getBody().front());
  function.walk(
      [](transformer::RepeatOp op) { groupCollectives(op.getBody().front()); });
  builder.setInsertionPointToEnd(&forward.getBody().front());
  Operation *first = firstOfBackward(function);
  for (Operation &op : function.getBody().front()) {
    if (&op == first) {
      flush();
      builder.setInsertionPointToEnd(&backward.getBody().front());
    }
    if (failed(lower(&op)))
      return failure();
  }
  flush();
  return success();
}

LogicalResult Lowering::lowerUpdate(func::FuncOp function) {
  groupCollectives(function.getBody().front());
  builder.setInsertionPointToEnd(&update.getBody().front());
  // The loss first: the runtime looks at it before anything is updated.
  llvm::SmallDenseSet<Operation *> ofLoss;
  for (auto op : function.getOps<mesh::CollectiveOpInterface>())
    if (auto state = op->getOperand(0).getDefiningOp<StateOp>();
        state && state.getKind() == StateKind::loss) {
      ofLoss.insert(op);
      if (failed(lowerCollective(op)))
        return failure();
    }
  flush();
  for (Operation &op : function.getBody().front())
    if (!ofLoss.contains(&op) && failed(lower(&op)))
      return failure();
  flush();
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

/// One stage's actions of the schedule of this name.
static FailureOr<SmallVector<std::pair<ListOp, int64_t>>>
orderOfMicrobatches(ProgramOp program, const std::string &name,
                    int64_t microbatches) {
  if (name == "1f1b" || microbatches == 1) // Of any number of microbatches.
    return inTurn(program, microbatches);
  absl::StatusOr<schedules::Table> table = schedules::generate(
      {.name = name, .microbatches = static_cast<int32_t>(microbatches)});
  if (!table.ok()) {
    emitError(analysis::ofSpec("pipeline.schedule", program.getLoc()))
        << table.status().message();
    return failure();
  }
  SmallVector<std::pair<ListOp, int64_t>> order;
  for (const schedules::Action &action : table->ranks[0])
    order.emplace_back(listOf(program, action.kind == schedules::Kind::forward
                                           ? ListKind::forward
                                           : ListKind::backward),
                       action.microbatch);
  return order;
}

namespace {
struct LowerToSchedulePass
    : impl::LowerToSchedulePassBase<LowerToSchedulePass> {
  using LowerToSchedulePassBase::LowerToSchedulePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto microbatch = module.lookupSymbol<func::FuncOp>("microbatch"),
         update = module.lookupSymbol<func::FuncOp>("update");
    if (!microbatch || !update || microbatch.getNumArguments() < 2 ||
        microbatch.getNumArguments() > 3) {
      module.emitError() << "expected functions @microbatch of tokens, "
                            "targets and maybe documents, and @update";
      return signalPassFailure();
    }
    auto builder = OpBuilder::atBlockBegin(module.getBody());
    auto program =
        ProgramOp::create(builder, module.getLoc(), "rank", IntegerAttr());
    program.getBody().emplaceBlock();
    Lowering lowering(module, program, bucketBytes, rowBytes);
    if (failed(lowering.lowerMicrobatch(microbatch)) ||
        failed(lowering.lowerUpdate(update)) ||
        failed(lowering.describeState(microbatch)) ||
        (float8Unit > 0 && failed(checkFloat8(program, float8Unit))))
      return signalPassFailure();
    FailureOr<SmallVector<std::pair<ListOp, int64_t>>> order =
        orderOfMicrobatches(program, schedule, microbatches);
    if (failed(order))
      return signalPassFailure();
    createActions(builder, program, *order);
    microbatch.erase();
    update.erase();
  }
};
} // namespace
} // namespace meshwork::schedule
