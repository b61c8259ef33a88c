// Gates between phases.
#include "dialects/mesh/Mesh.h"
#include "dialects/schedule/Schedule.h"
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/FileForms.h"
#include "dialects/transformer/StepFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/sharding/Shardings.h"
#include <map>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipelines {
namespace {

/// Layers are numbered from 0 on with none left out, so that a list with an
/// entry for each has no others.
LogicalResult checkLayers(func::FuncOp loss) {
  std::map<uint64_t, transformer::ParameterOp> layers;
  loss.walk([&](transformer::ParameterOp op) {
    if (op.getLayer())
      layers.try_emplace(*op.getLayer(), op);
  });
  uint64_t expected = 0;
  for (auto &[layer, op] : layers)
    if (layer != expected++)
      return op.emitOpError()
             << "is of layer " << layer << ", but no parameter is of layer "
             << expected - 1 << "; layers are numbered from 0 on";
  return success();
}

/// Stages are the spec's to cut.
LogicalResult checkStages(func::FuncOp loss) {
  WalkResult walked = loss.walk([](Operation *op) {
    if (stageOf(op) == 0)
      return WalkResult::advance();
    op->emitOpError() << "is of stage " << stageOf(op)
                      << " of a pipeline, which the spec cuts, not the model; "
                         "leave '"
                      << facts::stage << "' out";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

/// Fusion takes that dim for parts of a sum.
LogicalResult checkDims(func::FuncOp loss) {
  DimsAttr chunks = chunkDims(loss.getContext());
  WalkResult walked = loss.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (isNamedTensor(result.getType()) &&
          dimsOf(result).find(chunks.getNames()[0]) >= 0) {
        op->emitOpError() << "makes " << result.getType() << "; the dim name "
                          << chunks.getNames()[0]
                          << " is the compiler's own, so call it otherwise";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// Tensors in files have one parameter each; labels C3, C6.
static LogicalResult checkFileNames(func::FuncOp loss) {
  std::vector<plan::PieceNames> names;
  std::vector<transformer::ParameterOp> owners;
  loss.walk([&](transformer::ParameterOp op) {
    plan::addNames(transformer::formsOf(op), names);
    owners.resize(names.size(), op);
  });
  std::optional<plan::SameName> same = plan::findSameName(names);
  if (!same)
    return success();
  InFlightDiagnostic diag = owners[same->other].emitOpError()
                            << "(C6) its file \"" << names[same->other].pattern
                            << "\" may have the name of another's, \""
                            << names[same->one].pattern << "\"";
  diag.attachNote(owners[same->one].getLoc()) << "which is of this one";
  return diag;
}

/// A model as users may write it: one function, parameters of distinct names.
/// What is left out of it, or stands for others, passes say.
LogicalResult checkAttributes(ModuleOp module) {
  for (NamedAttribute attribute : module->getAttrs())
    if (isa_and_nonnull<schedule::ScheduleDialect>(attribute.getNameDialect()))
      return module.emitError()
             << "has the attribute '" << attribute.getName().strref()
             << "', which passes set, not the model; leave it out";
  return success();
}

LogicalResult checkInput(ModuleOp module) {
  if (failed(checkAttributes(module)))
    return failure();
  auto loss = functionOf(module, StepFunction::loss);
  if (!loss || loss.isExternal() || loss.getNumArguments() != 2 ||
      !llvm::hasSingleElement(loss.getBody()))
    return module.emitError() << "expected a model: a function @loss of "
                                 "%tokens and %targets with one block";
  for (BlockArgument argument : loss.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getRank() != 2 || !type.getElementType().isInteger(32) ||
        dimsOf(type) !=
            DimsAttr::get(module.getContext(), {dims::samples, dims::tokens}))
      return loss.emitError()
             << "argument " << argument.getArgNumber() << " of @loss is "
             << argument.getType()
             << ", expected an i32 tensor of dims <batch, sequence>";
  }
  llvm::StringMap<mlir::Location> names;
  bool fine = succeeded(checkDims(loss));
  loss.walk(
      [&](transformer::ParameterOp op) {
        auto [known, isNew] = names.try_emplace(op.getName(), op.getLoc());
        if (isNew)
          return;
        InFlightDiagnostic diag =
            op.emitOpError()
            << "(C3) name \"" << op.getName()
            << "\" is taken; tied weights are one parameter used twice";
        diag.attachNote(known->second) << "by this one";
        fine = false;
      });
  for (Operation &op : loss.getBody().front())
    if (!isa<TransformerDialect, func::FuncDialect>(op.getDialect())) {
      op.emitOpError("stands in a model; models consist of transformer ops");
      fine = false;
    }
  return success(fine && succeeded(checkFileNames(loss)) &&
                 succeeded(checkLayers(loss)) && succeeded(checkStages(loss)));
}

/// Reports each op for which `isLeft` holds. A map holds numbers alone, which
/// no phase removes; they are many.
LogicalResult checkGone(ModuleOp module,
                        llvm::function_ref<bool(Operation *)> isLeft,
                        StringRef phase) {
  bool fine = true;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isLeft(op)) {
      op->emitOpError() << "is left after the phase '" << phase << "'";
      fine = false;
    }
    return isa<MapOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
  return success(fine);
}

bool hasOpenDim(Operation *op) {
  return llvm::any_of(op->getResultTypes(), [](Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    return shaped && !shaped.hasStaticShape();
  });
}

/// State keeps its sharding, nothing else has one.
bool hasSharding(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  for (unsigned i = 0, n = function ? function.getNumArguments() : 0; i < n;
       ++i)
    if (function.getArgAttr(i, mesh::MeshDialect::shardingName))
      return true;
  return op->hasAttr(mesh::MeshDialect::shardingsName) &&
         stateUseOf(op) != StateUse::reads;
}

/// Types of state are one rank's part of the whole.
LogicalResult checkParts(ModuleOp module) {
  mesh::MeshAttr attr = mesh::meshOf(module);
  bool fine = true;
  module.walk([&](Operation *op) {
    auto stored =
        op->getAttrOfType<mesh::ShardingAttr>(mesh::MeshDialect::storedName);
    auto whole = op->getAttrOfType<DenseI64ArrayAttr>(
        isa<StateOp>(op) ? "mesh.global_shape" : "global_shape");
    if (!attr || !stored || !whole || op->getNumResults() != 1)
      return;
    ArrayRef<int64_t> found = tensorType(op->getResult(0)).getShape();
    auto expected =
        sharding::localShape(sharding::meshFrom(attr), whole.asArrayRef().vec(),
                             sharding::fromAttr(attr, stored));
    if (found == ArrayRef(expected))
      return;
    op->emitOpError() << "has a part of "
                      << DenseI64ArrayAttr::get(op->getContext(), found)
                      << ", expected "
                      << DenseI64ArrayAttr::get(op->getContext(), expected)
                      << " of " << whole << " for " << stored;
    fine = false;
  });
  return success(fine);
}

/// Not after phases that copy ops, or say where buffers lie: what they leave is
/// verified after the next one, or checked as the plan. A module is verified
/// as it is parsed.
bool isVerifiedAfter(StringRef name) {
  const Phase *phase = llvm::find_if(
      phases(), [&](const Phase &one) { return one.name == name; });
  return phase != phases().end() && phase->isVerified;
}

struct GatePass : PassWrapper<GatePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GatePass)
  GatePass() = default;
  GatePass(StringRef name, bool verifies) : verifies(verifies) {
    phase = name.str();
  }
  GatePass(const GatePass &other)
      : PassWrapper(other), verifies(other.verifies) {
    phase = other.phase.getValue();
  }

  StringRef getArgument() const override { return "meshwork-gate"; }
  StringRef getDescription() const override {
    return "Verifies the module and reports what a phase should have removed; "
           "changes nothing";
  }

  LogicalResult check(ModuleOp module) {
    StringRef name = phase.getValue();
    if (name == "input")
      return checkInput(module);
    auto isWhole = [](Operation *op) {
      return isa<mesh::ReshardOp>(op) || hasSharding(op);
    };
    if (name == "partition" && (failed(checkGone(module, isWhole, name)) ||
                                failed(checkParts(module))))
      return failure();
    if (name == "step" || name == "shard" || name == "partition" ||
        name == "pipeline" || name == "recompute")
      return checkGone(
          module,
          [](Operation *op) {
            return isa<DecomposableOpInterface, HeadLossOp>(op) ||
                   hasOpenDim(op);
          },
          name);
    if (name == "fuse")
      return checkGone(
          module,
          [](Operation *op) {
            return isa<HeadLossGradOp>(op) ||
                   (isFusible(op) && !isa<FusedOp>(op->getParentOp()));
          },
          name);
    if (name == "schedule")
      return checkGone(
          module,
          [](Operation *op) {
            return isa<TransformerDialect, mesh::MeshDialect>(
                       op->getDialect()) &&
                   !op->getParentOfType<FusedOp>() && !isa<FusedOp>(op);
          },
          name);
    if (name == "memory")
      return checkGone(
          module,
          [](Operation *op) {
            auto buffer = dyn_cast<schedule::BufferOp>(op);
            return buffer && !buffer.getOffset();
          },
          name);
    return module.emitError() << "no phase is named '" << name << "'";
  }

  void runOnOperation() override {
    if ((verifies && isVerifiedAfter(phase.getValue()) &&
         failed(verify(getOperation()))) ||
        failed(check(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  bool verifies = true;
  Option<std::string> phase{*this, "phase",
                            llvm::cl::desc("the phase that has just ended")};
};
} // namespace

std::unique_ptr<Pass> createGatePass(StringRef phase, bool verifies) {
  return std::make_unique<GatePass>(phase, verifies);
}

} // namespace meshwork::pipelines
