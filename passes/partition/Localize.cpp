// One rank's program: local types, and collectives in the place of reshards.
#include "dialects/mesh/Provenance.h"
#include "dialects/transformer/Facts.h"
#include "lib/Sharding/Reshard.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/partition/ExpandRing.h"
#include "passes/partition/OwnPart.h"
#include "passes/partition/Passes.h"
#include "passes/partition/ReshardSteps.h"
#include "passes/sharding/Shardings.h"
#include "passes/sharding/Ulysses.h"

using namespace mlir;
namespace meshwork::partition {
#define GEN_PASS_DEF_LOCALIZEPASS
#include "passes/partition/Passes.h.inc"
namespace {
using namespace transformer;
using namespace sharding;

class Localization {
public:
  Localization(func::FuncOp function, mesh::MeshAttr attr, Planner &planner)
      : function(function), attr(attr), mesh(meshFrom(attr)), planner(planner),
        builder(function.getContext()), masks(attr, mesh), steps(attr, mesh) {}

  LogicalResult run() {
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front())
      ops.push_back(&op);
    // Whole shapes are looked at before any type changes.
    for (Operation *op : ops)
      tellPart(op);
    for (BlockArgument argument : function.getArguments())
      shrink(argument);
    bool fine = true;
    for (Operation *op : ops)
      fine &= succeeded(checkPartial(op));
    if (!fine)
      return failure();
    for (Operation *op : ops)
      fine &= succeeded(localize(op));
    for (Operation *op : ops)
      if (isa<mesh::ReshardOp>(op) || replaced.contains(op))
        op->erase();
      else if (stateUseOf(op) != StateUse::reads)
        op->removeAttr(mesh::MeshDialect::shardingsName);
    for (BlockArgument argument : function.getArguments())
      keepSplit(argument);
    function.setFunctionType(FunctionType::get(
        function.getContext(), function.getBody().getArgumentTypes(), {}));
    return success(fine);
  }

private:
  Sharding shardingOf(Value value) const {
    return sharding::shardingOf(attr, value);
  }

  /// What attention in a ring is over.
  struct Sequence {
    Axes axes; // of the ranks that share it
    int64_t size;
  };

  void tellPart(Operation *op) {
    auto tensors = dyn_cast<TensorOpInterface>(op);
    if (!tensors)
      return;
    OwnPart part(attr, mesh, masks, op);
    if (constexpr int64_t rowsDim = 1; sharingOf(op) == Sharing::ring) {
      Value queries = op->getOperand(0);
      if (part.isSplit(queries, rowsDim))
        rings[op] = {shardingOf(queries).dims[rowsDim],
                     tensorType(queries).getDimSize(rowsDim)};
    }
    tensors.tellPart(part);
  }

  void shrink(Value value) {
    if (isa<RankedTensorType>(value.getType()))
      value.setType(localType(mesh, tensorType(value), shardingOf(value)));
  }

  /// Samples are given by number; of what else splits an argument the runtime
  /// must know.
  void keepSplit(BlockArgument argument) {
    Sharding sharding = shardingOf(argument);
    unsigned number = argument.getArgNumber();
    function.removeArgAttr(number, mesh::MeshDialect::shardingName);
    if (llvm::any_of(llvm::drop_begin(sharding.dims),
                     [](const Axes &axes) { return !axes.empty(); }))
      function.setArgAttr(number, storedName, toAttr(attr, sharding));
  }

  /// A partial sum may be added up, go through what is linear, or wait in a
  /// state that knows; anything else would make a wrong value of it.
  LogicalResult checkPartial(Operation *op) {
    auto partialOf = [&](Value value) {
      mesh::ShardingAttr sharding = isa<RankedTensorType>(value.getType())
                                        ? mesh::shardingOf(value)
                                        : mesh::ShardingAttr();
      return sharding ? idsOf(attr, sharding.getPartial()) : Axes();
    };
    if (auto reshard = dyn_cast<mesh::ReshardOp>(op)) {
      Sharding from = fromAttr(attr, reshard.getSource()),
               actual = shardingOf(reshard.getInput());
      if (from == actual)
        return success();
      return reshard.emitOpError()
             << "starts from " << textOf(mesh, from) << ", but its input is "
             << textOf(mesh, actual);
    }
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Axes partial = partialOf(operand);
      if (partial.empty())
        continue;
      auto isSame = [&](Value value) { return partialOf(value) == partial; };
      auto includes = [&](Value value) {
        Axes all = partialOf(value);
        return llvm::all_of(partial, [&](AxisId axis) {
          return llvm::is_contained(all, axis);
        });
      };
      auto stored = op->getAttrOfType<mesh::ShardingAttr>(storedName);
      bool waits = isa<AccumulateOp>(op) && stored &&
                   fromAttr(attr, stored).partial == partial;
      bool passes = isLinear(op) && llvm::all_of(op->getOperands(), isSame) &&
                    llvm::all_of(op->getResults(), includes);
      if (!waits && !passes)
        return op->emitOpError() << "operand #" << i << " is "
                                 << textOf(mesh, shardingOf(operand))
                                 << ", a sum that is not complete; expected a "
                                    "mesh.reshard before it";
    }
    return success();
  }

  LogicalResult localize(Operation *op) {
    if (auto reshard = dyn_cast<mesh::ReshardOp>(op))
      return collectives(reshard);
    if (stateUseOf(op) == StateUse::reads) {
      auto whole =
          builder.getDenseI64ArrayAttr(tensorType(op->getResult(0)).getShape());
      op->setAttr(isa<StateOp>(op) ? "mesh.global_shape" : "global_shape",
                  whole);
    }
    masks.guard(op);
    masks.derive(op, llvm::map_to_vector(op->getResults(), [&](Value result) {
                   return shardingOf(result);
                 }));
    for (Value result : op->getResults())
      shrink(result);
    if (auto ring = rings.find(op); ring != rings.end())
      expand(op, ring->second);
    return success();
  }

  /// Attention in hops.
  void expand(Operation *op, const Sequence &sequence) {
    SmallVector<Value> results =
        expandRing(cast<AttentionOpInterface>(op), attr, mesh, sequence.axes,
                   sequence.size);
    for (auto [result, found] : llvm::zip_equal(op->getResults(), results)) {
      masks.takeOver(result, found);
      result.replaceAllUsesWith(found);
    }
    replaced.insert(op);
  }

  LogicalResult collectives(mesh::ReshardOp op) {
    auto whole = tensorType(op.getResult());
    std::string error;
    const Plan *plan = planner.plan(std::vector<int64_t>(whole.getShape()),
                                    whole.getElementTypeBitWidth() / 8,
                                    fromAttr(attr, op.getSource()),
                                    fromAttr(attr, op.getTarget()), error);
    if (!plan)
      return op.emitOpError() << "cannot be done: " << error;
    noteSteps(op, *plan);
    Value value = op.getInput();
    for (const Step &step : plan->steps) {
      Value input = value;
      value = steps.build(op, input, step, localType(mesh, whole, step.after));
      masks.deriveStep(input, value, step, whole);
    }
    op.getResult().replaceAllUsesWith(value);
    return success();
  }

  void noteSteps(mesh::ReshardOp op, const Plan &plan) {
    mesh::Provenance &notes = mesh::provenanceOf(op);
    auto known = notes.reshards.find(op);
    if (known == notes.reshards.end())
      return;
    auto [value, move] = known->second;
    for (const Step &step : plan.steps)
      notes.values[value].moves[move].steps.push_back(
          {step.text(mesh), step.bytesSent});
    notes.reshards.erase(known);
  }

  func::FuncOp function;
  mesh::MeshAttr attr;
  Mesh mesh;
  Planner &planner;
  OpBuilder builder;
  Masks masks;
  ReshardSteps steps;
  llvm::DenseSet<Operation *> replaced;
  llvm::DenseMap<Operation *, Sequence> rings;
};

struct LocalizePass : impl::LocalizePassBase<LocalizePass> {
  void runOnOperation() override {
    mesh::MeshAttr attr = mesh::meshOf(getOperation());
    if (!attr) {
      getOperation().emitError()
          << "expected the attribute mesh.mesh; run -sharding-annotate first";
      return signalPassFailure();
    }
    Planner planner(meshFrom(attr));
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(Localization(function, attr, planner).run()))
        return signalPassFailure();
  }
};
} // namespace
} // namespace meshwork::partition
