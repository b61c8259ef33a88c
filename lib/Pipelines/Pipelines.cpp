// What happens in which order, and why.
#include "lib/Pipelines/Pipelines.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/autodiff/Passes.h"
#include "passes/codegen/Passes.h"
#include "passes/fusion/Passes.h"
#include "passes/memory/Passes.h"
#include "passes/partition/Passes.h"
#include "passes/schedule/Passes.h"
#include "passes/transform/Passes.h"

using namespace mlir;

namespace meshwork::pipelines {
namespace {

StringRef nameOf(spec::Type type) { return type == spec::Type::bf16 ? "bf16" : "f32"; }

/// The mesh as an attribute, so that what follows needs no spec.
struct NoteMeshPass : PassWrapper<NoteMeshPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NoteMeshPass)
  NoteMeshPass() = default;
  explicit NoteMeshPass(const spec::Spec &spec) {
    for (const spec::Axis &axis : spec.mesh)
      axes.push_back(axis.name + "=" + std::to_string(axis.size));
  }
  NoteMeshPass(const NoteMeshPass &other) : PassWrapper(other) { axes = other.axes; }
  StringRef getArgument() const override { return "meshwork-note-mesh"; }
  StringRef getDescription() const override { return "Sets mesh.axes on the module"; }
  void runOnOperation() override {
    Builder builder(&getContext());
    SmallVector<NamedAttribute> entries;
    for (const std::string &axis : axes) {
      auto [name, size] = StringRef(axis).split('=');
      int64_t number = 0;
      if (size.getAsInteger(10, number) || number < 1) {
        getOperation().emitError() << "axis is '" << axis << "', expected a form like dp=2";
        return signalPassFailure();
      }
      entries.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(number)));
    }
    getOperation()->setAttr("mesh.axes", builder.getDictionaryAttr(entries));
  }
  ListOption<std::string> axes{*this, "axes", llvm::cl::desc("name=size, outermost first")};
};

void buildInput(OpPassManager &, const spec::Spec &) {}

void buildStep(OpPassManager &passes, const spec::Spec &spec) {
  transform::BindPassOptions bind;
  bind.batch = int64_t{spec.batch.micro} * spec.dataParallel();
  bind.sequence = spec.batch.sequence;
  bind.tokensPerStep = int64_t{spec.batch.global} * spec.batch.sequence;
  passes.addPass(transform::createBindPass(bind));
  // Autodiff knows primitive ops only; equal subexpressions (rotary tables) are
  // merged first so that it visits each once.
  passes.addPass(transform::createDecomposePass());
  passes.addPass(createCSEPass());
  passes.addPass(autodiff::createAutodiffPass());
  autodiff::BuildUpdatePassOptions update;
  update.beta1 = spec.optimizer.beta1;
  update.beta2 = spec.optimizer.beta2;
  update.epsilon = spec.optimizer.epsilon;
  update.weightDecay = spec.optimizer.weightDecay;
  update.clipGradNorm = spec.optimizer.clipGradNorm;
  update.compute = nameOf(spec.compute);
  passes.addPass(autodiff::createBuildUpdatePass(update));
  transform::PrecisionPassOptions precision;
  precision.compute = nameOf(spec.compute);
  precision.gradients = nameOf(spec.gradients);
  passes.addPass(transform::createPrecisionPass(precision));
}

void buildPartition(OpPassManager &passes, const spec::Spec &spec) {
  passes.addPass(std::make_unique<NoteMeshPass>(spec));
  partition::SplitBatchPassOptions split;
  for (const spec::ShardRule &rule : spec.shard)
    if (rule.dim == "batch")
      split.axes.append(rule.axes.begin(), rule.axes.end());
  passes.addPass(partition::createSplitBatchPass(split));
}

void buildFuse(OpPassManager &passes, const spec::Spec &) {
  // Local sizes are known now: chunks of the head hold this rank's tokens.
  passes.addPass(transform::createExpandHeadPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(fusion::createFoldBiasPass());
  // After folding, so that a product that is accumulated stays one.
  passes.addPass(fusion::createFuseAccumulationsPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(fusion::createFusePass());
  passes.addPass(createCSEPass()); // Within kernels.
}

void buildSchedule(OpPassManager &passes, const spec::Spec &) { passes.addPass(schedule::createLowerToSchedulePass()); }
void buildMemory(OpPassManager &passes, const spec::Spec &) { passes.addPass(memory::createPlanArenaPass()); }

constexpr Phase allPhases[] = {
    {"input", "the model as given, checked", buildInput},
    {"step", "one training step on whole tensors", buildStep},
    {"partition", "each rank's part", buildPartition},
    {"fuse", "kernels, products and what else runs", buildFuse},
    {"schedule", "one program on buffers", buildSchedule},
    {"memory", "one arena", buildMemory},
};

struct SpecOptions : PassPipelineOptions<SpecOptions> {
  Option<std::string> file{*this, "spec", llvm::cl::desc("the spec, a TOML file")};
  ListOption<std::string> overrides{*this, "set", llvm::cl::desc("overrides, like batch.micro=8")};
};

void buildFromFile(const Phase &phase, OpPassManager &passes, const SpecOptions &options) {
  auto buffer = llvm::MemoryBuffer::getFile(options.file);
  if (!buffer)
    llvm::report_fatal_error(llvm::Twine("cannot read spec '") + options.file + "'", /*gen_crash_diag=*/false);
  std::vector<std::string> overrides(options.overrides.begin(), options.overrides.end());
  spec::Result result = spec::parse((*buffer)->getBuffer().str(), options.file, overrides);
  if (!result.spec)
    llvm::report_fatal_error(llvm::Twine(textOf(result.diagnostics)), /*gen_crash_diag=*/false);
  phase.build(passes, *result.spec);
  passes.addPass(createGatePass(phase.name));
}
} // namespace

ArrayRef<Phase> phases() { return allPhases; }

void registerDialects(DialectRegistry &registry) {
  registry.insert<transformer::TransformerDialect, mesh::MeshDialect, schedule::ScheduleDialect, func::FuncDialect>();
}

void registerPassesAndPipelines() {
  registerTransformsPasses();
  transform::registerTransformPasses();
  autodiff::registerAutodiffPasses();
  partition::registerPartitionPasses();
  fusion::registerFusionPasses();
  schedule::registerSchedulePasses();
  memory::registerMemoryPasses();
  codegen::registerCodegenPasses();
  PassRegistration<NoteMeshPass>();
  registerPass([] { return createGatePass(); });
  static SmallVector<std::unique_ptr<PassPipelineRegistration<SpecOptions>>> pipelines;
  for (const Phase &phase : phases())
    pipelines.push_back(std::make_unique<PassPipelineRegistration<SpecOptions>>(
        std::string("meshwork-") + phase.name.str(), phase.summary,
        [&phase](OpPassManager &passes, const SpecOptions &options) { buildFromFile(phase, passes, options); }));
}

} // namespace meshwork::pipelines
