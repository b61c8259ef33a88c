#include "tools/meshwork/driver/Folded.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "passes/analysis/FoldedLayers.h"
#include "passes/pipeline/Passes.h"
#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/Choices.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

/// Whether a pattern of names may match one layer and not another: what holds
/// no digit and no class of characters takes all numbers alike.
bool tellsLayersApart(StringRef pattern) {
  return pattern.find_first_of("0123456789?[{\\") != StringRef::npos;
}

bool tellsLayersApart(const spec::Spec &spec) {
  auto tells = [](const auto &named) { return tellsLayersApart(named.name); };
  return llvm::any_of(spec.pins, tells) ||
         llvm::any_of(spec.optimizer.groups, tells);
}

/// Keeps what is said, which is said again when all layers are compiled.
class Unsaid {
public:
  explicit Unsaid(MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &) { any = true; }) {}
  bool anything() const { return any; }

private:
  bool any = false;
  ScopedDiagnosticHandler handler;
};

void addPhases(PassManager &passes, StringRef first, StringRef last,
               const spec::Spec &spec) {
  bool isBetween = false;
  for (const pipelines::Phase &phase : pipelines::phases()) {
    isBetween |= phase.name == first;
    if (isBetween)
      pipelines::addPhase(passes, phase, spec, /*folds=*/true,
                          /*verifies=*/false);
    if (phase.name == last)
      return;
  }
}

/// Whether all layers of @microbatch go the same way until they are lowered: no
/// stages, nothing to choose, and one policy.
bool staysFolded(const spec::Spec &spec) {
  return spec.stageRanks() == 1 && spec.recomputeOfLayers.empty() &&
         spec.recompute != spec::Recompute::byBudget;
}

/// Kernels of the optimizer join parameters of all layers, so these are all
/// there when it is fused.
void addFoldedPhases(PassManager &passes, StringRef last,
                     const spec::Spec &spec) {
  addPhases(passes, firstFolded, "partition", spec);
  if (last != "partition") {
    passes.addPass(pipeline::createUnfoldLayersPass({"update"}));
    addPhases(passes, "pipeline", last, spec);
  }
  passes.addPass(pipeline::createUnfoldLayersPass(
      {last == "partition" ? "" : "microbatch"}));
}

/// Nothing where the model has no equal layers.
OwningOpRef<ModuleOp> folded(ModuleOp module) {
  OwningOpRef<ModuleOp> copy(module.clone());
  PassManager fold(module.getContext());
  fold.addPass(pipeline::createFoldLayersPass());
  fold.enableVerifier(false);
  if (failed(fold.run(*copy)) || analysis::FoldedLayers::of(*copy).copies == 0)
    return nullptr;
  return copy;
}

OwningOpRef<ModuleOp> runTo(StringRef last, ModuleOp few,
                            const spec::Spec &spec) {
  OwningOpRef<ModuleOp> copy(few.clone());
  Unsaid unsaid(few.getContext());
  PassManager passes(few.getContext());
  addFoldedPhases(passes, last, spec);
  if (failed(passes.run(*copy)) || unsaid.anything())
    return nullptr;
  return copy;
}
} // namespace

StringRef runFolded(ModuleOp module, const spec::Spec &spec) {
  if (tellsLayersApart(spec) || choosesBefore("shard", spec))
    return "";
  OwningOpRef<ModuleOp> few = folded(module);
  if (!few)
    return "";
  for (StringRef last : {"fuse", "partition"}) {
    if (last == "fuse" && !staysFolded(spec))
      continue;
    if (OwningOpRef<ModuleOp> done = runTo(last, *few, spec)) {
      module->setAttrs(done.get()->getAttrDictionary());
      module.getBodyRegion().takeBody(done->getBodyRegion());
      return last;
    }
  }
  return "";
}

bool FewLayers::haveRun(StringRef phase) {
  if (last.empty())
    return false;
  if (phase == last)
    last = "";
  return true;
}

bool FewLayers::run(StringRef phase, ModuleOp module, const spec::Spec &spec) {
  if (phase == firstFolded)
    last = runFolded(module, spec);
  return haveRun(phase);
}

} // namespace meshwork::driver
