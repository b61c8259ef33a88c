// From one step to one step for each coordinate along the pipeline's axis.
#include "dialects/transformer/Facts.h"
#include "lib/Analysis/SpecKey.h"
#include "passes/pipeline/Cut.h"
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Table.h"
#include "llvm/ADT/StringSet.h"
#include <numeric>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipeline {

#define GEN_PASS_DEF_CUTSTAGESPASS
#include "passes/pipeline/Passes.h.inc"

namespace {
InFlightDiagnostic wrong(StringRef key, Operation *op) {
  return emitError(analysis::ofSpec(key, op->getLoc()));
}

/// The layers of each stage, as given or balanced.
FailureOr<SmallVector<int64_t>> share(const LayersOfOps &layers,
                                      ArrayRef<int64_t> given, int64_t stages,
                                      Operation *op) {
  if (layers.count() < stages)
    return wrong(given.empty() ? "mesh.axes" : "pipeline.layers", op)
           << "the pipeline has " << stages << " stages, and the model "
           << layers.count()
           << " layers; expected at least one layer for each, so at most "
           << layers.count() << " stages";
  if (given.empty())
    return balance(layers.flops(), stages);
  int64_t sum = std::accumulate(given.begin(), given.end(), int64_t{0});
  if (static_cast<int64_t>(given.size()) != stages || sum != layers.count()) {
    InFlightDiagnostic error = wrong("pipeline.layers", op);
    error << "has " << given.size() << " stages with " << sum
          << " layers in all, expected " << stages << " with " << layers.count()
          << ", like [";
    llvm::interleaveComma(balance(layers.flops(), stages), error);
    error << "]";
    return failure();
  }
  return llvm::to_vector(given);
}

struct CutStagesPass : impl::CutStagesPassBase<CutStagesPass> {
  using CutStagesPassBase::CutStagesPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    mesh::MeshAttr mesh = mesh::meshOf(module);
    auto name = StringAttr::get(&getContext(), axis);
    if (axis.empty() || !mesh || mesh.find(name) < 0 || mesh.sizeOf(name) == 1)
      return;
    microbatch = module.lookupSymbol<func::FuncOp>("microbatch");
    update = module.lookupSymbol<func::FuncOp>("update");
    if (!microbatch || !update) {
      module.emitError() << "expected functions @microbatch and @update";
      return signalPassFailure();
    }
    if (failed(cut(name, mesh.sizeOf(name))))
      return signalPassFailure();
    microbatch.erase();
    update.erase();
  }

private:
  LogicalResult cut(StringAttr name, int64_t ranks) {
    ModuleOp module = getOperation();
    FailureOr<schedules::Table> table = computeTable(
        {schedule, ranks, virtualStages, microbatches, times, kept}, module);
    if (failed(table))
      return failure();
    LayersOfOps layers(microbatch);
    Placement placement{
        name, llvm::to_vector_of<int64_t>(table->rankOf), {}, false};
    placement.splitsBackward = splitsBackward(*table);
    FailureOr<SmallVector<int64_t>> shared =
        share(layers, this->layers, placement.stages(), module);
    if (failed(shared))
      return failure();
    for (auto [stage, count] : llvm::enumerate(*shared))
      placement.ofLayer.append(count, stage);
    Scatter scatter(microbatch, name, this->scatter, machine);
    std::optional<Line> line =
        Line::create(microbatch, layers, placement, scatter);
    return line ? build(*line, placement, ranks) : failure();
  }

  /// A gradient without its parameter would be of no update.
  static LogicalResult checkGradients(func::FuncOp step,
                                      const llvm::StringSet<> &held) {
    for (auto op : step.getOps<AccumulateOp>())
      if (op.getKind() == StateKind::gradient && !held.contains(op.getName()))
        return op.emitOpError("is of stages that do not have '")
               << op.getName() << "'";
    return success();
  }

  LogicalResult build(const Line &line, const Placement &placement,
                      int64_t ranks) {
    SmallVector<ModuleOp> modules;
    llvm::StringMap<SmallVector<int64_t>> coordinates; // of parameters
    for (int64_t rank = 0; rank < ranks; ++rank) {
      auto own = ModuleOp::create(microbatch.getLoc());
      own->setDiscardableAttrs(getOperation()->getDiscardableAttrDictionary());
      getOperation().push_back(own);
      modules.push_back(own);
      func::FuncOp step = line.build(own, rank);
      llvm::StringSet<> held;
      step.walk([&](transformer::ParameterOp op) {
        coordinates[op.getName()].push_back(rank);
        held.insert(op.getName());
      });
      if (failed(checkGradients(step, held)))
        return failure();
    }
    for (auto [rank, own] : llvm::enumerate(modules))
      if (failed(cutUpdate(update, own, rank, coordinates, placement)))
        return failure();
    return success();
  }

  func::FuncOp microbatch, update;
};
} // namespace
} // namespace meshwork::pipeline
