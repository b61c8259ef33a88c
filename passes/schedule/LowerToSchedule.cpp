// From the step on tensors to one program on buffers.
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "passes/analysis/SpecKey.h"
#include "passes/schedule/Lowering.h"
#include "passes/schedule/LoweringModels.h"
#include "passes/schedule/Overwrites.h"
#include "passes/schedule/Passes.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

#define GEN_PASS_DEF_LOWERTOSCHEDULEPASS
#include "passes/schedule/Passes.h.inc"

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

/// Whether an instruction reads by this use of a view.
static bool isRead(OpOperand &use) {
  auto user = dyn_cast<InstructionOpInterface>(use.getOwner());
  return user &&
         use.getOperandNumber() < user->getNumOperands() - user.countWrites();
}

using PlaceOfView = std::tuple<Value, Attribute, Type, Attribute>;
static PlaceOfView placeOf(ViewOp view) {
  return {view.getBuffer(), view.getOffsetAttr(), view.getType(),
          view.getShiftsAttr()};
}

/// Only a read says which value of a state it means. A write goes through the
/// view of such a read, or else through that of the old value: plans have fewer
/// views then.
static void clearUpdatedWrites(ProgramOp program) {
  llvm::DenseSet<PlaceOfView> read;
  program.walk([&](ViewOp view) {
    if (view.getUpdated() && llvm::any_of(view->getUses(), isRead))
      read.insert(placeOf(view));
  });
  program.walk([&](ViewOp view) {
    if (!read.contains(placeOf(view)))
      view.setUpdated(false);
  });
}

namespace {
struct LowerToSchedulePass
    : impl::LowerToSchedulePassBase<LowerToSchedulePass> {
  using LowerToSchedulePassBase::LowerToSchedulePassBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    LowerToSchedulePassBase::getDependentDialects(registry);
    registerLowerings(registry);
  }

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
          /*arena=*/IntegerAttr(), /*host=*/IntegerAttr());
      program.getBody().emplaceBlock();
      if (failed(lower(module, program, kernels)))
        return signalPassFailure();
      OpBuilder atEnd(&getContext());
      createActions(atEnd, program,
                    module->getAttrOfType<ActionTableAttr>(actionTableName));
      module->removeAttr(actionTableName);
      if (Attribute others = module->getAttr(equalRanksName))
        program->setAttr(equalRanksName, others);
    }
    if (isPipeline)
      for (ModuleOp module : ranks)
        module.erase();
  }

private:
  LogicalResult lower(ModuleOp module, ProgramOp program, Kernels &kernels) {
    auto microbatch = functionOf(module, StepFunction::microbatch),
         update = functionOf(module, StepFunction::update);
    if (!microbatch || !update || microbatch.getNumArguments() < 2 ||
        !llvm::all_of(microbatch.getArguments(), isInput))
      return module.emitError()
             << "expected functions @microbatch of tokens, targets and what "
                "else the launcher gives, and @update";
    Lowering lowering(module, program, kernels, bucketBytes, rowBytes,
                      reductionOrder == spec::ReductionOrder::any);
    if (failed(lowerMicrobatch(microbatch, lowering)) ||
        failed(lowerUpdate(update, lowering)) ||
        failed(checkOverwrites(microbatch.front(), lowering.placement)) ||
        failed(checkOverwrites(update.front(), lowering.placement)) ||
        failed(describeState(microbatch, lowering)) ||
        (float8Unit > 0 && failed(checkFloat8(program, float8Unit))))
      return failure();
    microbatch.erase();
    update.erase();
    clearUpdatedWrites(program);
    return success();
  }
};
} // namespace
} // namespace meshwork::schedule
