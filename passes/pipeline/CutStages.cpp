// From one step to one step for each coordinate along the pipeline's axis.
#include "dialects/schedule/Schedule.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "lib/Spec/ScheduleNames.h"
#include "meshwork/Text/Counted.h"
#include "passes/analysis/SpecKey.h"
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

/// " (2 on each of 4 ranks)": where stages are not the ranks.
std::string perRank(int64_t stages, int64_t ranks) {
  if (stages == ranks)
    return "";
  return " (" + std::to_string(stages / ranks) + " on each of " +
         std::to_string(ranks) + " ranks)";
}

/// Of what makes a number of stages.
StringRef keyOfStages(ArrayRef<int64_t> given, int64_t stages,
                      const TableOptions &options) {
  if (!given.empty())
    return "pipeline.layers";
  if (stages == options.ranks)
    return "mesh.axes";
  return options.virtualStages > 0 ? "pipeline.virtual_stages"
                                   : "pipeline.schedule";
}

/// The layers of each stage, as given or balanced.
FailureOr<SmallVector<int64_t>> share(const LayersOfOps &layers,
                                      ArrayRef<int64_t> given, int64_t stages,
                                      const TableOptions &options,
                                      Operation *op) {
  if (layers.count() < stages)
    return wrong(keyOfStages(given, stages, options), op)
           << "the pipeline has " << counted(stages, "stage")
           << perRank(stages, options.ranks) << ", and the model "
           << counted(layers.count(), "layer")
           << "; expected at least one layer for each, so at most "
           << counted(layers.count(), "stage");
  if (given.empty())
    return balance(layers.flops(), stages);
  int64_t sum = std::accumulate(given.begin(), given.end(), int64_t{0});
  if (static_cast<int64_t>(given.size()) != stages || sum != layers.count()) {
    InFlightDiagnostic error = wrong("pipeline.layers", op);
    error << "has " << counted(given.size(), "stage") << " with "
          << counted(sum, "layer") << " in all, expected " << stages
          << perRank(stages, options.ranks) << " with " << layers.count()
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
    if (axis.empty() || !mesh || mesh.find(name) < 0)
      return orderOneRank();
    microbatch = functionOf(module, StepFunction::microbatch);
    update = functionOf(module, StepFunction::update);
    if (!microbatch || !update) {
      module.emitError() << "expected functions @microbatch and @update";
      return signalPassFailure();
    }
    if (mesh.sizeOf(name) == 1) {
      if (failed(checkOneStage()))
        return signalPassFailure();
      return orderOneRank();
    }
    if (failed(cut(name, mesh.sizeOf(name))))
      return signalPassFailure();
    microbatch.erase();
    update.erase();
  }

private:
  TableOptions optionsOf(int64_t ranks) {
    return {schedule, ranks, virtualStages, microbatches, times, kept};
  }

  /// One rank has all layers, however they are cut, so that a spec of several
  /// ranks can be scaled down; it is checked as theirs are.
  LogicalResult checkOneStage() {
    ModuleOp module = getOperation();
    if (failed(computeTable(optionsOf(1), module)))
      return failure();
    int64_t count = LayersOfOps(microbatch).count();
    int64_t sum = std::accumulate(layers.begin(), layers.end(), int64_t{0});
    if (layers.empty() || sum == count)
      return success();
    return wrong("pipeline.layers", module)
           << "has " << counted(sum, "layer")
           << " in all, expected the model's " << count;
  }

  void orderOneRank() {
    bool isGpipe = schedule == spec::wordOf(spec::Schedule::gpipe);
    TableOptions options = optionsOf(1);
    options.schedule = wordOf(isGpipe ? spec::Schedule::gpipe
                                      : spec::Schedule::oneForwardOneBackward);
    options.virtualStages = 1;
    FailureOr<schedules::Table> table = computeTable(options, getOperation());
    if (failed(table))
      return signalPassFailure();
    schedule::setActionTable(getOperation(), table->ranks.front());
  }

  /// A stage of layers without ops would wait for what never comes.
  LogicalResult checkLayers(const LayersOfOps &layers) {
    std::optional<int64_t> empty = layers.firstEmpty();
    if (!empty)
      return success();
    return microbatch.emitOpError("computes nothing in layer ")
           << *empty << " of " << layers.count()
           << "; expected something in each: an op is of the last layer among "
              "its operands' parameters, so look at their `layer`";
  }

  LogicalResult cut(StringAttr name, int64_t ranks) {
    ModuleOp module = getOperation();
    TableOptions options = optionsOf(ranks);
    FailureOr<schedules::Table> table = computeTable(options, module);
    if (failed(table))
      return failure();
    Placement placement{
        name, llvm::to_vector_of<int64_t>(table->rankOf), {}, false};
    placement.splitsBackward = splitsBackward(*table);
    if (placement.splitsBackward)
      keepRoundsApart(microbatch);
    LayersOfOps layers(microbatch);
    FailureOr<SmallVector<int64_t>> shared =
        share(layers, this->layers, placement.stages(), options, module);
    if (failed(shared) || failed(checkLayers(layers)))
      return failure();
    for (auto [stage, count] : llvm::enumerate(*shared))
      placement.ofLayer.append(count, stage);
    Scatter scatter(microbatch, name, this->scatter, machine);
    std::optional<Line> line =
        Line::create(microbatch, layers, placement, scatter);
    FailureOr<schedules::Table> order = withTransfers(*table, options, module);
    return line && succeeded(order) ? build(*line, placement, *order)
                                    : failure();
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
                      const schedules::Table &order) {
    SmallVector<ModuleOp> modules;
    Coordinates coordinates;
    for (auto [rank, actions] : llvm::enumerate(order.ranks)) {
      auto own = ModuleOp::create(microbatch.getLoc());
      own->setDiscardableAttrs(getOperation()->getDiscardableAttrDictionary());
      getOperation().push_back(own);
      schedule::setActionTable(own, actions);
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
    auto ops = opsOfRanks(update, coordinates, modules.size());
    for (auto [rank, own] : llvm::enumerate(modules))
      if (failed(
              cutUpdate(update, ops[rank], own, rank, coordinates, placement)))
        return failure();
    return success();
  }

  func::FuncOp microbatch, update;
};
} // namespace
} // namespace meshwork::pipeline
