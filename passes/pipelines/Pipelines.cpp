// What happens in which order, and why.
#include "passes/pipelines/Pipelines.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/StepFunctions.h"
#include "dialects/transformer/Transformer.h"
#include "lib/Cost/OfSpec.h"
#include "lib/Plan/Float8Sizes.h"
#include "lib/Spec/ScheduleNames.h"
#include "lib/Spec/Words.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/autodiff/Passes.h"
#include "passes/codegen/Passes.h"
#include "passes/codegen/gpu/Passes.h"
#include "passes/fusion/Passes.h"
#include "passes/memory/Passes.h"
#include "passes/partition/Passes.h"
#include "passes/pipeline/Passes.h"
#include "passes/pipelines/SpecFiles.h"
#include "passes/schedule/Passes.h"
#include "passes/sharding/Passes.h"
#include "passes/transform/Passes.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace meshwork::pipelines {
namespace {

/// How many ranks may share a dim; by rules alone, before any sharding.
std::vector<options::DimSplit> splitsOf(const spec::Spec &spec) {
  std::vector<options::DimSplit> splits;
  for (const spec::ShardRule &rule : spec.shard) {
    int64_t ranks = 1;
    for (const spec::Axis &axis : spec.mesh)
      if (llvm::is_contained(rule.axes, axis.name))
        ranks *= axis.size;
    splits.push_back({rule.dim, ranks});
  }
  return splits;
}

/// Functions here have one block, so that there is no control flow to simplify.
std::unique_ptr<Pass> createPatternsPass() {
  return createCanonicalizerPass(
      GreedyRewriteConfig().setRegionSimplificationLevel(
          GreedySimplifyRegionLevel::Disabled));
}

void buildInput(OpPassManager &, const spec::Spec &) {}

void buildStep(OpPassManager &passes, const spec::Spec &spec) {
  transform::BindPassOptions bind;
  bind.batch = int64_t{spec.batch.micro} * spec.dataParallel();
  bind.sequence = spec.batch.sequence;
  bind.microbatches = spec.microbatches();
  bind.countsTargets = !spec.batch.documentEndLoss;
  passes.addPass(transform::createBindPass(bind));
  if (spec.batch.separateDocuments)
    passes.addPass(transform::createSeparateDocumentsPass());
  if (!spec.batch.documentEndLoss)
    passes.addPass(transform::createCountTargetsPass());
  transform::LimitChoicesPassOptions limit;
  limit.capacity = spec.experts.capacity.value_or(0);
  limit.group = spec.experts.group;
  passes.addPass(transform::createLimitChoicesPass(limit));
  transform::RouterLossesPassOptions routers;
  routers.group = spec.experts.group;
  routers.balance = spec.experts.balance;
  routers.balanceCoefficient = spec.experts.balanceCoefficient.value_or(-1);
  routers.zCoefficient = spec.experts.zCoefficient.value_or(0);
  routers.microbatches = spec.microbatches();
  passes.addPass(transform::createRouterLossesPass(routers));
  // Autodiff knows primitive ops only; equal subexpressions (rotary tables) are
  // merged first so that it visits each once.
  passes.addPass(transform::createDecomposePass());
  passes.addPass(createCSEPass());
  if (spec.device == spec::Device::cuda)
    passes.addPass(transform::createCheckDevicePass());
  if (spec.batch.restartPositions)
    passes.addPass(transform::createRestartPositionsPass());
  passes.addPass(autodiff::createAutodiffPass());
  // The gradient of a map has all operands of the map. What it does not read
  // must neither be moved between ranks nor be kept or computed again for it.
  passes.addPass(createPatternsPass());
  autodiff::BuildUpdatePassOptions update;
  update.kind = spec.optimizer.kind;
  for (const auto &[name, value] : spec.optimizer.settings)
    update.settings.push_back({name, value});
  update.groups.assign(spec.optimizer.groups.begin(),
                       spec.optimizer.groups.end());
  update.clipGradNorm = spec.optimizer.clipGradNorm;
  update.compute = spec.compute;
  update.rounding = spec.rounding;
  passes.addPass(autodiff::createBuildUpdatePass(update));
  transform::CountChoicesPassOptions counts;
  counts.biasRate = spec.experts.biasRate.value_or(0);
  passes.addPass(transform::createCountChoicesPass(counts));
  transform::PrecisionPassOptions precision;
  precision.compute = spec.compute;
  precision.gradients = spec.gradients;
  passes.addPass(transform::createPrecisionPass(precision));
  // Before sharding, so that their numbers are those of whole tensors.
  if (!spec.fp8) {
    passes.addPass(transform::createQuantizeWeightsPass({spec.zero.weights}));
    return;
  }
  transform::QuantizePassOptions quantize;
  std::vector<options::DimSplit> splits = splitsOf(spec);
  quantize.splits.assign(splits.begin(), splits.end());
  quantize.delayed = spec.scaling == spec::Scaling::delayed;
  quantize.targets = int64_t{spec.batch.global} * spec.batch.sequence;
  quantize.weightsPerStep = spec.castsWeightsPerStep();
  quantize.tiles = spec.device == spec::Device::cuda;
  passes.addPass(transform::createQuantizePass(quantize));
}

sharding::AnnotatePassOptions annotations(const spec::Spec &spec) {
  sharding::AnnotatePassOptions options;
  options.axes.assign(spec.mesh.begin(), spec.mesh.end());
  options.rules.assign(spec.shard.begin(), spec.shard.end());
  std::vector<std::string> exchanged = spec.exchangedAxes();
  options.exchanged.assign(exchanged.begin(), exchanged.end());
  // Those cut what the others have in zigzag.
  if (spec.sequenceLayout == layout::DimLayout::zigzag)
    for (const spec::ShardRule &rule : spec.shard)
      for (const std::string &axis : rule.axes)
        if (rule.dim == transformer::dims::tokens &&
            !llvm::is_contained(exchanged, axis))
          options.zigzag.push_back(axis);
  // Which is chosen before, where it can be; this works everywhere.
  options.method = spec::wordOf(spec.context == spec::Context::byCost
                                    ? spec::Context::gathered
                                    : spec.context);
  if (spec.experts.exchange == spec::Exchange::allToAll)
    options.bound = spec.experts.bound;
  options.pins.assign(spec.pins.begin(), spec.pins.end());
  return options;
}

void buildShard(OpPassManager &passes, const spec::Spec &spec) {
  passes.addPass(sharding::createAnnotatePass(annotations(spec)));
  passes.addPass(sharding::createPropagatePass());
  sharding::ShardStatesPassOptions states;
  states.stage = spec.zero.stage;
  // The parts that one gather over all other axes joins are neighbours.
  const spec::Zero &zero = spec.zero;
  states.axes.assign(zero.inner.begin(), zero.inner.end());
  llvm::append_range(states.axes,
                     zero.inner.empty() ? zero.axes : zero.gatheredOnce());
  states.wholeGradients = zero.reduce == spec::Reduce::step;
  passes.addPass(sharding::createShardStatesPass(states));
  // The optimizer works on state, so it comes after state has its shardings.
  passes.addPass(sharding::createPropagatePass(
      {transformer::symbolOf(transformer::StepFunction::update).str()}));
}

/// The axis that layers are shared out over, also of one rank.
std::string lineOf(const spec::Spec &spec) {
  for (const spec::ShardRule &rule : spec.shard)
    if (spec.pipeline.axis.empty() && rule.dim == "layers" &&
        !rule.axes.empty())
      return rule.axes.front();
  return spec.pipeline.axis;
}

void buildPartition(OpPassManager &passes, const spec::Spec &spec) {
  partition::InsertReshardsPassOptions reshards;
  std::vector<std::string> once = spec.zero.gatheredOnce();
  reshards.once.assign(once.begin(), once.end());
  passes.addPass(partition::createInsertReshardsPass(reshards));
  passes.addPass(partition::createLocalizePass());
  if (spec.zero.gradients != spec::GradientType::precision) {
    transform::QuantizeGradientsPassOptions gradients;
    gradients.type = spec.zero.gradients;
    gradients.block = spec.zero.gradientBlock;
    gradients.inner.assign(spec.zero.inner.begin(), spec.zero.inner.end());
    gradients.tellError = spec.zero.gradientError;
    gradients.stages = lineOf(spec);
    passes.addPass(transform::createQuantizeGradientsPass(gradients));
  }
  // Before stages are cut, which may part the two passes; their rows are one
  // value.
  passes.addPass(transform::createExpandExpertsPass());
}

/// For an option of a pass: one word, also of a table.
std::string scheduleOf(const spec::Spec &spec) {
  std::string word = spec.pipeline.schedule;
  if (word.ends_with('\n'))
    word.pop_back();
  std::replace(word.begin(), word.end(), '\n', '/');
  return word;
}

/// Axes along which ranks have the same samples.
std::vector<std::string> axesBesideBatch(const spec::Spec &spec) {
  std::vector<std::string> axes;
  for (const spec::Axis &axis : spec.mesh)
    axes.push_back(axis.name);
  for (const spec::ShardRule &rule : spec.shard)
    for (const std::string &axis : rule.axes)
      if (rule.dim == transformer::dims::samples || rule.dim == "layers")
        std::erase(axes, axis);
  return axes;
}

void buildPipeline(OpPassManager &passes, const spec::Spec &spec) {
  pipeline::CutStagesPassOptions options;
  options.axis = lineOf(spec);
  bool isSearched =
      spec.pipeline.schedule == spec::wordOf(spec::Schedule::best);
  if (!isSearched || spec.stageRanks() > 1) // One rank needs no search.
    options.schedule = scheduleOf(spec);
  options.virtualStages = spec.pipeline.virtualStages;
  options.microbatches = spec.microbatches();
  options.times.assign(spec.pipeline.times.begin(), spec.pipeline.times.end());
  options.kept = spec.pipeline.kept;
  const std::vector<int64_t> &layers = spec.pipeline.fittedLayers.empty()
                                           ? spec.pipeline.layers
                                           : spec.pipeline.fittedLayers;
  options.layers.assign(layers.begin(), layers.end());
  std::vector<std::string> axes = axesBesideBatch(spec);
  options.scatter.assign(axes.begin(), axes.end());
  options.machine = cost::machineOf(spec);
  passes.addPass(pipeline::createCutStagesPass(options));
}

/// Where the passes on each rank's step go.
OpPassManager &ofEachRank(OpPassManager &passes, const spec::Spec &spec) {
  return spec.stageRanks() > 1 ? passes.nest<ModuleOp>() : passes;
}

/// One for each layer, or one for all.
std::vector<spec::Recompute> policiesOf(const spec::Spec &spec) {
  if (spec.recomputeOfLayers.empty())
    return {spec.recompute};
  return spec.recomputeOfLayers;
}

/// Smaller activations than this part of offload.window, 1 MiB, are not worth a
/// copy of their own.
constexpr uint64_t leastPartOfWindow = 16;

void buildFold(OpPassManager &passes, const spec::Spec &spec) {
  if (spec.stageRanks() < 2)
    return;
  pipeline::FoldRanksPassOptions options;
  std::vector<spec::Recompute> policies = policiesOf(spec);
  options.policies.assign(policies.begin(), policies.end());
  passes.addPass(pipeline::createFoldRanksPass(options));
}

void buildRecompute(OpPassManager &passes, const spec::Spec &spec) {
  memory::RecomputePassOptions options;
  std::vector<spec::Recompute> policies = policiesOf(spec);
  options.policies.assign(policies.begin(), policies.end());
  options.keepGathered = spec.zero.gathered == spec::Gathered::keep;
  ofEachRank(passes, spec).addPass(memory::createRecomputePass(options));
}

fusion::FusePassOptions fusionOn(spec::Device device) {
  fusion::FusePassOptions options; // Of a CPU: chunks for its threads.
  if (device == spec::Device::cpu) {
    // LLVM takes far more than twice as long for a kernel twice as large, and
    // the norm of all gradients reads something of each parameter.
    options.operands = 256;
    return options;
  }
  // Two blocks for each multiprocessor of a large GPU, in a power of two that
  // threads share evenly. The block of a narrow row is small, and a
  // multiprocessor needs many to have enough loads on their way; more than fit
  // at once leave most of it idle at the end. Measured on an H100, a norm's
  // gradient over rows of 768: 768 chunks 2.57 TB/s, 1024 2.18, 512 2.25.
  options.chunks = 256;
  // By registers (ptxas, sm_90a), two blocks of a gradient over rows of 1600 or
  // 2048 fit a multiprocessor: 256 chunks then run at once, and 512 have twice
  // the sums to store and to add up.
  options.narrowChunks = 768;
  options.chunkElements = 768 << 10;
  // What a block loads for its part of a norm should take it longer than to
  // begin: 16 rows of 1024, which its threads take at once.
  options.partElements = 1 << 14;
  // 4352 bytes of arguments (PTX ISA before 8.1); results and streams need some
  // too.
  options.operands = 448;
  options.tileMaxima = true;
  return options;
}

/// Tokens whose logits exist at once. A CPU keeps them in its caches. On a GPU
/// each chunk reads and writes the whole gradient of the head, rounded to its
/// type each time. With a vocabulary of 50257 and 768 columns in bf16 these are
/// 154 MB. At 3.3 TB/s they take as long as the three products of 150 tokens at
/// 750 Tflop/s. With 4096 tokens that is little, and logits are 0.4 GB.
///
/// A gradient in bf16 is rounded after each chunk, by 2^-9 of the sum at most:
/// four chunks stay below 1 %. Where several microbatches follow each other,
/// they take that for themselves.
transform::ExpandHeadPassOptions headOf(const spec::Spec &spec) {
  transform::ExpandHeadPassOptions options;
  options.roundedChunks = spec.microbatches() == 1 ? 4 : 1;
  if (spec.device == spec::Device::cuda)
    options.chunk = 4096;
  return options;
}

bool isDone(spec::When when, bool isUseful) {
  return when == spec::When::useful ? isUseful : when == spec::When::always;
}

/// We have no evidence that cuBLASLt supports every epilogue in f32.
bool foldsEpilogues(const spec::Spec &spec) {
  return isDone(spec.epilogues, spec.device == spec::Device::cuda &&
                                    spec.compute == spec::Type::bf16);
}

void buildFuse(OpPassManager &all, const spec::Spec &spec) {
  OpPassManager &passes = ofEachRank(all, spec);
  // Local sizes are known now: chunks of the head hold this rank's tokens.
  passes.addPass(transform::createExpandHeadPass(headOf(spec)));
  // A host reads a number of its own memory at once; a GPU's it waits for.
  passes.addPass(transform::createExpandRoundsPass(
      {/*oneWord=*/spec.device == spec::Device::cuda}));
  passes.addPass(createPatternsPass());
  passes.addPass(createCSEPass());
  passes.addPass(fusion::createFoldBiasPass());
  // What is kept is decided, and biases are in their products: chunks change
  // neither.
  if (spec.overlap.matmul != spec::When::never)
    passes.addPass(partition::createChunkProductsPass(
        {/*mode=*/spec.overlap.matmul, /*chunks=*/spec.overlap.chunks,
         /*machine=*/cost::machineOf(spec)}));
  // After folding, so that a product that is accumulated stays one.
  passes.addPass(fusion::createFuseAccumulationsPass());
  passes.addPass(createPatternsPass());
  passes.addPass(fusion::createFusePass(fusionOn(spec.device)));
  if (foldsEpilogues(spec))
    passes.addPass(fusion::createFoldEpiloguesPass(
        {/*measured=*/spec.epilogues == spec::When::useful}));
  passes.addPass(fusion::createDropUnreadPass());
  passes.addPass(createCSEPass()); // Within kernels.
}

void buildSchedule(OpPassManager &passes, const spec::Spec &spec) {
  schedule::LowerToSchedulePassOptions options;
  options.bucketBytes = static_cast<int64_t>(spec.overlap.bucketBytes);
  options.axis = spec.pipeline.axis;
  options.rowBytes = spec.device == spec::Device::cuda ? 128 : 0;
  options.float8Unit = spec.device == spec::Device::cuda ? plan::float8Unit : 0;
  options.reductionOrder = spec.reductionOrder;
  passes.addPass(schedule::createLowerToSchedulePass(options));
  if (spec.mayOffloadActivations()) {
    schedule::OffloadActivationsPassOptions activations;
    std::vector<spec::Recompute> policies = policiesOf(spec);
    activations.policies.assign(policies.begin(), policies.end());
    activations.leastBytes =
        static_cast<int64_t>(spec.offload.windowBytes / leastPartOfWindow);
    passes.addPass(schedule::createOffloadActivationsPass(activations));
  }
  if (spec.offload.optimizer)
    passes.addPass(schedule::createOffloadStatesPass(
        {/*windowBytes=*/static_cast<int64_t>(spec.offload.windowBytes)}));
  passes.addPass(
      schedule::createOverlapPass({/*mode=*/spec.overlap.collectives,
                                   /*machine=*/cost::machineOf(spec)}));
  // Last, so that what overlaps is decided on single launches. A CPU's threads
  // begin a launch sooner than a GPU does.
  if (isDone(spec.mergeLaunches, spec.device == spec::Device::cuda))
    passes.addPass(schedule::createMergeLaunchesPass());
}
void buildMemory(OpPassManager &passes, const spec::Spec &spec) {
  if (spec.stageRanks() > 1)
    passes.addPass(pipeline::createUnfoldRanksPass());
  passes.addPass(memory::createPlanArenaPass());
}

constexpr Phase allPhases[] = {
    {"input", "the model as given, checked", buildInput, /*isVerified=*/false},
    {"step", "one training step on whole tensors", buildStep,
     /*isVerified=*/true},
    {"shard", "who holds what", buildShard, /*isVerified=*/true},
    {"partition", "each rank's part", buildPartition, /*isVerified=*/true},
    {"pipeline", "each rank's stages", buildPipeline, /*isVerified=*/false},
    {"recompute", "what the backward pass computes again", buildRecompute,
     /*isVerified=*/false, buildFold},
    {"fuse", "kernels, products and what else runs", buildFuse,
     /*isVerified=*/true},
    {"schedule", "one program on buffers", buildSchedule, /*isVerified=*/true},
    {"memory", "one arena", buildMemory, /*isVerified=*/false},
};

struct SpecOptions : PassPipelineOptions<SpecOptions> {
  Option<std::string> file{*this, "spec",
                           llvm::cl::desc("the spec, a TOML file")};
  ListOption<std::string> overrides{
      *this, "set", llvm::cl::desc("overrides, like batch.micro=8")};
};

void resolve(spec::Result &result, const std::string &file) {
  auto read = [](const std::string &path) -> std::optional<std::string> {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? std::optional((*buffer)->getBuffer().str()) : std::nullopt;
  };
  Diagnostics wrong = resolveFiles(*result.spec, result.origins, file, read);
  result.diagnostics.insert(result.diagnostics.end(), wrong.begin(),
                            wrong.end());
}

void buildFromFile(const Phase &phase, OpPassManager &passes,
                   const SpecOptions &options) {
  auto buffer = llvm::MemoryBuffer::getFile(options.file);
  if (!buffer)
    llvm::report_fatal_error(llvm::Twine("cannot read spec '") + options.file +
                                 "'",
                             /*gen_crash_diag=*/false);
  std::vector<std::string> overrides(options.overrides.begin(),
                                     options.overrides.end());
  spec::Result result =
      spec::parse((*buffer)->getBuffer().str(), options.file, overrides);
  if (result.spec)
    resolve(result, options.file);
  if (!result.spec || hasErrors(result.diagnostics))
    llvm::report_fatal_error(llvm::Twine(textOf(result.diagnostics)),
                             /*gen_crash_diag=*/false);
  phase.build(passes, *result.spec);
  passes.addPass(createGatePass(phase.name));
}
} // namespace

ArrayRef<Phase> phases() { return allPhases; }

void addPhase(PassManager &passes, const Phase &phase, const spec::Spec &spec,
              bool folds, bool verifies) {
  if (folds && phase.fold)
    phase.fold(passes, spec);
  phase.build(passes, spec);
  passes.addPass(createGatePass(phase.name, verifies));
  passes.enableVerifier(false);
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<transformer::TransformerDialect, mesh::MeshDialect,
                  schedule::ScheduleDialect, func::FuncDialect>();
}

void registerPassesAndPipelines() {
  registerTransformsPasses();
  transform::registerTransformPasses();
  autodiff::registerAutodiffPasses();
  sharding::registerShardingPasses();
  partition::registerPartitionPasses();
  pipeline::registerPipelinePasses();
  fusion::registerFusionPasses();
  schedule::registerSchedulePasses();
  memory::registerMemoryPasses();
  codegen::registerCodegenPasses();
  codegen::registerCodegenGpuPasses();
  registerPass([] { return createGatePass(); });
  static SmallVector<std::unique_ptr<PassPipelineRegistration<SpecOptions>>>
      pipelines;
  for (const Phase &phase : phases())
    pipelines.push_back(std::make_unique<PassPipelineRegistration<SpecOptions>>(
        std::string("meshwork-") + phase.name.str(), phase.summary,
        [&phase](OpPassManager &passes, const SpecOptions &options) {
          buildFromFile(phase, passes, options);
        }));
}

} // namespace meshwork::pipelines
