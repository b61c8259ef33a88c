#include "passes/verify/Shrink.h"

#include "dialects/transformer/Transformer.h"
#include "lib/Plan/Float8Sizes.h"
#include "lib/Schedules/Generate.h"
#include "mlir/IR/Verifier.h"
#include "passes/verify/SizeRules.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
namespace meshwork::verify {
namespace {

constexpr uint32_t fewRanks = 8;   // run as they are
constexpr uint32_t mostStages = 4; // ranks of a pipeline
constexpr int64_t layersOfStage = 2, layersWithoutStages = 3;

bool contains(const std::vector<std::string> &names, StringRef name) {
  return llvm::is_contained(names, name.str());
}

class Shrinker {
public:
  Shrinker(ModuleOp model, const spec::Spec &spec, uint32_t vocabulary)
      : model(model), loss(model.lookupSymbol<func::FuncOp>("loss")),
        large(spec), vocabulary(vocabulary) {
    small.spec = spec;
  }

  FailureOr<SmallStep> run() {
    shrinkMesh();
    shrinkLayers();
    shrinkBatch();
    shrinkSizes();
    shrinkRest();
    if (failed(mlir::verify(model)) || failed(checkSpec()))
      return failure();
    return std::move(small);
  }

private:
  void say(const std::string &what, int64_t before, int64_t after) {
    if (before != after)
      small.said.push_back(what + " " + std::to_string(before) + " -> " +
                           std::to_string(after));
  }

  //===-- mesh --------------------------------------------------------------//

  bool splitsSequence(StringRef axis) const {
    return llvm::any_of(large.shard, [&](const spec::ShardRule &rule) {
      return rule.dim == "sequence" && contains(rule.axes, axis);
    });
  }
  /// A table of actions from a file, or a list of layers, is of so many stages.
  bool keepsStages() const {
    return !large.pipeline.layers.empty() ||
           llvm::StringRef(large.pipeline.schedule).contains('\n');
  }
  uint32_t fewer(const spec::Axis &axis) const {
    if (axis.name == large.pipeline.axis)
      return keepsStages() ? axis.size : std::min(axis.size, mostStages);
    if (axis.size <= 3)
      return axis.size;
    // In a ring of two both neighbours are one rank.
    if (splitsSequence(axis.name))
      return axis.size % 2 == 0 ? 4 : 3;
    return axis.size % 2 == 0 ? 2 : 3;
  }

  void shrinkMesh() {
    if (large.numRanks() > fewRanks)
      for (spec::Axis &axis : small.spec.mesh)
        axis.size = fewer(axis);
    for (auto [before, after] : llvm::zip_equal(large.mesh, small.spec.mesh))
      say("axis " + before.name, before.size, after.size);
  }

  //===-- layers and batch --------------------------------------------------//

  static int64_t stagesOf(const spec::Spec &spec) {
    const spec::Pipeline &pipeline = spec.pipeline;
    return int64_t{spec.stageRanks()} *
           (pipeline.virtualStages > 0
                ? pipeline.virtualStages
                : schedules::ownVirtualStages(pipeline.schedule));
  }

  void shrinkLayers() {
    int64_t stages = stagesOf(small.spec), before = stagesOf(large),
            count = countLayers(loss);
    int64_t kept = stages > 1 ? stages * layersOfStage : layersWithoutStages;
    if (stages > 1 && count < before * layersOfStage)
      kept = stages + (count % before != 0);
    else if (stages > 1 && count % before != 0)
      --kept;
    if (keepsStages())
      kept = count;
    kept = std::min(kept, count);
    if (!keepLayers(loss, kept, pinned())) {
      small.said.push_back("layers are all kept: they do not hand one tensor "
                           "from each to the next");
      return;
    }
    say("layers", count, countLayers(loss));
  }

  void shrinkBatch() {
    spec::Batch &batch = small.spec.batch;
    batch.micro = fewerSamples();
    shrinkGroup();
    say("batch.micro", large.batch.micro, batch.micro);
    uint32_t count = large.microbatches(), fewer = fewerMicrobatches();
    say("microbatches", count, fewer);
    batch.global = batch.micro * small.spec.dataParallel() * fewer;
  }

  /// Of a microbatch on a rank. As many tokens in all have FP8 products or have
  /// none (SizeRules has the same of a sequence's part).
  uint32_t fewerSamples() const {
    uint32_t micro = large.batch.micro,
             common = std::gcd(micro, uint32_t{plan::float8Unit});
    bool suffices = sequenceOfRank() % plan::float8Unit == 0;
    if (!large.fp8 || suffices)
      return std::min<uint32_t>(micro, 2);
    return common > 1 ? common : std::min<uint32_t>(micro, 3);
  }
  int64_t sequenceOfRank() const {
    int64_t ranks = 1;
    for (const spec::ShardRule &rule : large.shard)
      for (const spec::Axis &axis : large.mesh)
        if (rule.dim == "sequence" && contains(rule.axes, axis.name))
          ranks *= axis.size;
    return llvm::divideCeilSigned(large.batch.sequence, ranks);
  }

  /// Groups of sequences stay one of several, all of a rank, or of several
  /// ranks.
  void shrinkGroup() {
    uint32_t group = large.experts.group, micro = large.batch.micro;
    if (group == 1)
      return;
    uint32_t fewer = group <= micro ? 2 : 2 * small.spec.dataParallel();
    small.spec.experts.group = fewer;
    small.spec.batch.micro = group < micro ? 4 : 2;
    say("experts.group", group, fewer);
  }

  /// Enough that a schedule gets to its steady state.
  uint32_t fewerMicrobatches() const {
    uint32_t count = large.microbatches(), stages = small.spec.stageRanks();
    if (keepsStages())
      return count;
    if (stages == 1)
      return std::min<uint32_t>(count, 2);
    uint32_t most = std::min(count, 2 * stages + 1);
    bool divides = count % large.stageRanks() == 0;
    for (uint32_t fewer = most; fewer > 0; --fewer)
      if ((fewer % stages == 0) == divides)
        return fewer;
    return count;
  }

  //===-- sizes -------------------------------------------------------------//

  void shrinkSizes() {
    ModelDims dims(model);
    SizeRules rules(dims, large, small.spec);
    small.spec.batch.sequence = static_cast<uint32_t>(rules.sequence());
    say("batch.sequence", large.batch.sequence, rules.sequence());
    SmallSizes sizes = rules.sizes();
    for (const auto &[before, after] : sizes.windows)
      say("window", before, after);
    for (const auto &[name, size] : sizes.dims)
      say("dim " + name, dims.sizes.at(name), size);
    resize(model, sizes);
    small.vocabulary = vocabulary;
    for (const auto &[name, size] : sizes.dims)
      if (dims.sizes.at(name) == static_cast<int64_t>(vocabulary))
        small.vocabulary = static_cast<uint32_t>(size);
  }

  //===-- the rest ----------------------------------------------------------//

  void shrinkRest() {
    spec::Spec &spec = small.spec;
    spec.collectives.clear();
    spec.memoryPerRankBytes.reset();
    if (large.recompute == spec::Recompute::byBudget || large.zero.hasChoice())
      spec.memoryPerRankBytes = uint64_t{1} << 40; // it asks for a limit
    if (spec.offload.optimizer || spec.mayOffloadActivations())
      spec.offload.windowBytes = 1024; // so that several windows follow
    if (large.zero.gradients != spec::GradientType::precision) {
      spec.zero.gradients = spec::GradientType::precision;
      spec.zero.gradientError = false;
      small.said.push_back(
          "zero.gradients is left out (each rank rounds its own part of a sum, "
          "so one rank's numbers are others)");
    }
    // Small steps would gain nothing, so nothing would run beside anything.
    if (large.overlap.collectives == spec::When::useful) {
      spec.overlap.collectives = spec::When::always;
      small.said.push_back("overlap.collectives \"auto\" -> \"always\"");
    }
    constexpr uint64_t smallBucket = 1024;
    if (large.overlap.matmul == spec::When::useful) {
      spec.overlap.matmul = spec::When::always;
      small.said.push_back("overlap.matmul \"auto\" -> \"always\"");
    }
    spec.overlap.bucketBytes =
        std::min<uint64_t>(large.overlap.bucketBytes, smallBucket);
    int64_t tokens = int64_t{spec.batch.micro} * spec.batch.sequence;
    dropGroups();
    small.headChunk = std::max<int64_t>(1, tokens / 3);
  }

  /// Those that match layers which are left out.
  void dropGroups() {
    llvm::erase_if(small.spec.optimizer.groups,
                   [&](const spec::OptimizerGroup &group) {
                     auto glob = llvm::GlobPattern::create(group.name);
                     if (!glob) {
                       llvm::consumeError(glob.takeError());
                       return false; // The small step is refused by it, too.
                     }
                     return !matchesAny(*glob);
                   });
  }
  bool matchesAny(const llvm::GlobPattern &glob) const {
    return ModuleOp(model)
        .walk([&](transformer::ParameterOp op) {
          return glob.match(op.getName()) ? WalkResult::interrupt()
                                          : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Parameters that a pin matches; of a pattern that matches several, the
  /// first will do.
  std::set<std::string> pinned() const {
    std::set<std::string> names;
    for (const spec::TensorPin &pin : large.pins)
      if (std::string name = firstMatch(pin); !name.empty())
        names.insert(name);
    return names;
  }
  std::string firstMatch(const spec::TensorPin &pin) const {
    llvm::Expected<llvm::GlobPattern> glob =
        llvm::GlobPattern::create(pin.name);
    std::string found;
    if (!glob) {
      llvm::consumeError(glob.takeError());
      return found;
    }
    ModuleOp(model).walk([&](transformer::ParameterOp op) {
      bool isMatch = glob->match(op.getName());
      if (isMatch)
        found = op.getName().str();
      return isMatch ? WalkResult::interrupt() : WalkResult::advance();
    });
    return found;
  }

  /// By the spec's own checks.
  LogicalResult checkSpec() {
    spec::Result again = spec::parse(spec::print(small.spec), "the small spec");
    if (again.spec) {
      small.spec = *again.spec;
      return success();
    }
    return model.emitError("the step cannot be made small: ")
           << textOf(again.diagnostics);
  }

  ModuleOp model;
  func::FuncOp loss;
  const spec::Spec &large;
  uint32_t vocabulary;
  SmallStep small;
};
} // namespace

FailureOr<SmallStep> shrink(ModuleOp model, const spec::Spec &spec,
                            uint32_t vocabulary) {
  return Shrinker(model, spec, vocabulary).run();
}

} // namespace meshwork::verify
