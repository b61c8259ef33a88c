// ZeRO as shardings of state (Rajbhandari et al., arXiv 1910.02054): nothing
// else is needed, since what reads and writes state is resharded to fit.
#include "dialects/transformer/StepFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/sharding/Notes.h"
#include "passes/sharding/Passes.h"

using namespace mlir;
namespace meshwork::sharding {
#define GEN_PASS_DEF_SHARDSTATESPASS
#include "passes/sharding/Passes.h.inc"
namespace {
using namespace transformer;

struct ShardStatesPass : impl::ShardStatesPassBase<ShardStatesPass> {
  using ShardStatesPassBase::ShardStatesPassBase;

  void runOnOperation() override {
    auto microbatch = functionOf(getOperation(), StepFunction::microbatch),
         update = functionOf(getOperation(), StepFunction::update);
    attr = mesh::meshOf(getOperation());
    if (!microbatch || !update || !attr || stage > 3) {
      getOperation().emitError()
          << "expected functions @microbatch and @update, the attribute "
             "mesh.mesh and a stage from 0 to 3";
      return signalPassFailure();
    }
    mesh = meshFrom(attr);
    if (failed(readAxes()) || failed(readParameters(microbatch)))
      return signalPassFailure();
    microbatch.walk([&](Operation *op) { store(op, /*inUpdate=*/false); });
    update.walk([&](Operation *op) { store(op, /*inUpdate=*/true); });
  }

private:
  /// How a parameter lies for computing, and how what ZeRO splits does.
  struct Shardings {
    Sharding compute, split;
    Value parameter;
  };

  LogicalResult readAxes() {
    for (const std::string &axis : axes) {
      bool isKnown = false;
      for (auto [id, known] : llvm::enumerate(mesh.axes)) {
        if (mesh::wholeAxis(known.name) != axis)
          continue;
        isKnown = true;
        if (known.size > 1)
          split.push_back(static_cast<AxisId>(id));
      }
      if (!isKnown)
        return getOperation().emitError()
               << "axis '" << axis << "' of ZeRO is not one of " << attr;
    }
    return success();
  }

  LogicalResult readParameters(func::FuncOp microbatch) {
    bool fine = true;
    for (auto op : microbatch.getOps<transformer::ParameterOp>()) {
      mesh::ShardingAttr own = mesh::shardingOf(op.getResult());
      if (!own) {
        op.emitOpError("has no sharding; run -sharding-propagate first");
        fine = false;
        continue;
      }
      Sharding compute = fromAttr(attr, own);
      states[op.getName()] = {compute,
                              op.getUntrained()
                                  ? compute // What an update adds is small.
                                  : furtherSplit(op.getType(), compute),
                              op.getResult()};
    }
    return success(fine);
  }

  /// `compute` with the axes of ZeRO as minor-most ones of the first dim that
  /// they divide; if none, of the longest, whose last blocks are short.
  Sharding furtherSplit(RankedTensorType type, Sharding compute) const {
    Axes left;
    for (AxisId axis : split)
      if (llvm::none_of(compute.dims, [&](const Axes &dim) {
            return llvm::is_contained(dim, axis);
          }))
        left.push_back(axis);
    SmallVector<int64_t> shape(localType(mesh, type, compute).getShape());
    if (left.empty() || shape.empty())
      return compute;
    auto divisible = llvm::find_if(
        shape, [&](int64_t size) { return size % mesh.numRanks(left) == 0; });
    auto at = divisible != shape.end() ? divisible : llvm::max_element(shape);
    Axes &dim = compute.dims[at - shape.begin()];
    dim.insert(dim.end(), left.begin(), left.end());
    return compute;
  }

  /// How state of `kind` lies between instructions.
  Sharding storedOf(StateKind kind, StringRef name) const {
    auto known = states.find(name);
    if (known == states.end())
      return replicated(0); // the loss and the norm
    unsigned splitFrom = kind == StateKind::weight     ? 3
                         : kind == StateKind::gradient ? 2
                                                       : 1;
    bool isWhole = kind == StateKind::gradient && wholeGradients;
    return stage >= splitFrom && !isWhole ? known->second.split
                                          : known->second.compute;
  }

  /// One number for a whole parameter is on all its ranks, and what is kept for
  /// the step too.
  Sharding storedOf(StateKind kind, StringRef name, Value value) const {
    int64_t numDims = tensorType(value).getRank();
    return numDims == 0 || !isOfParameter(kind) ? replicated(numDims)
                                                : storedOf(kind, name);
  }

  void store(Operation *op, bool inUpdate) {
    std::optional<StateKey> key = usedStateOf(op);
    if (!key)
      return;
    Value value =
        op->getNumResults() != 0 ? op->getResult(0) : op->getOperand(0);
    op->setAttr(storedName,
                toAttr(attr, storedOf(key->kind, key->name, value)));
    // The optimizer works where its own state lies.
    if (auto state = dyn_cast<StateOp>(op); state && inUpdate) {
      mesh::setSharding(
          state.getResult(),
          toAttr(attr, isOfParameter(key->kind)
                           ? storedOf(StateKind::master, key->name, state)
                           : storedOf(key->kind, key->name, state)));
      note(state);
    }
  }

  /// State lies as its parameter does, and further split as [zero] says.
  void note(StateOp state) {
    auto known = states.find(state.getName());
    if (known == states.end() || state.getType().getRank() == 0)
      return;
    // The annotation itself, not the parameter: all layers then tell the same.
    const Sharding &compute = known->second.compute;
    Sharding stored = storedOf(StateKind::master, state.getName());
    for (auto [i, axes] : llvm::enumerate(stored.dims))
      for (AxisId axis : axes) {
        bool isOwn = !llvm::is_contained(compute.dims[i], axis);
        std::string name = mesh.axes[axis].name;
        std::string key = isOwn ? "zero.stage"
                                : mesh::provenanceOf(state).annotationOf(
                                      known->second.parameter, i, name);
        if (!key.empty())
          notesOn(state.getResult())
              .dims[i]
              .causes.push_back({name, key, "", "", 0, 0});
      }
  }

  mesh::MeshAttr attr;
  Mesh mesh;
  Axes split;
  llvm::StringMap<Shardings> states;
};
} // namespace
} // namespace meshwork::sharding
