#include "passes/verify/Shrink.h"

#include "dialects/transformer/Transformer.h"
#include "mlir/IR/Verifier.h"
#include "passes/verify/LeastSize.h"
#include "passes/verify/SmallModel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MathExtras.h"

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

  uint32_t before(StringRef axis) const { return sizeOf(large, axis); }
  uint32_t after(StringRef axis) const { return sizeOf(small.spec, axis); }
  static uint32_t sizeOf(const spec::Spec &of, StringRef name) {
    for (const spec::Axis &axis : of.mesh)
      if (axis.name == name)
        return axis.size;
    return 1;
  }

  //===-- layers and batch --------------------------------------------------//

  void shrinkLayers() {
    int64_t stages = small.spec.stageRanks() *
                     std::max<int64_t>(large.pipeline.virtualStages, 1),
            count = countLayers(loss);
    int64_t kept = stages > 1 ? stages * layersOfStage : layersWithoutStages;
    int64_t before = int64_t{large.stageRanks()} *
                     std::max<int64_t>(large.pipeline.virtualStages, 1);
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
    batch.micro = std::min<uint32_t>(large.batch.micro, 2);
    say("batch.micro", large.batch.micro, batch.micro);
    uint32_t count = large.microbatches(), fewer = fewerMicrobatches();
    say("microbatches", count, fewer);
    batch.global = batch.micro * small.spec.dataParallel() * fewer;
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

  /// All that may split a dim: the spec's rule for it, axis after axis, then
  /// what ZeRO splits of it further.
  std::vector<Split> splitsOf(StringRef dim) const {
    std::vector<std::string> axes;
    auto addAxes = [&](const std::vector<std::string> &more) {
      for (const std::string &axis : more)
        if (!contains(axes, axis))
          axes.push_back(axis);
    };
    for (const spec::ShardRule &rule : large.shard)
      if (rule.dim == dim ||
          (dim == "sequence" && rule.dim == "residual_sequence"))
        addAxes(rule.axes);
    if (dim == "heads" || dim == "kv_heads") // exchanged for the sequence
      for (const spec::ShardRule &rule : large.shard)
        if (rule.dim == "sequence")
          addAxes(rule.axes);
    for (const spec::TensorPin &pin : large.pins)
      for (const spec::Axis &axis : large.mesh)
        if (pin.dims.find('"' + axis.name + '"') != std::string::npos)
          addAxes({axis.name});
    std::vector<Split> splits;
    addPrefixes({}, axes, splits);
    addPrefixes(axes, large.zero.axes, splits);
    addPrefixes({}, large.zero.axes, splits);
    if (dim == "sequence" && large.sequenceLayout != layout::DimLayout::block)
      for (size_t i = 0, n = splits.size(); i < n; ++i)
        splits.push_back({2 * splits[i].before, 2 * splits[i].after});
    return splits;
  }

  void addPrefixes(const std::vector<std::string> &first,
                   const std::vector<std::string> &axes,
                   std::vector<Split> &splits) const {
    Split split;
    for (const std::string &axis : first)
      split = {split.before * before(axis), split.after * after(axis)};
    splits.push_back(split);
    for (const std::string &axis : axes) {
      if (contains(first, axis))
        continue;
      split = {split.before * before(axis), split.after * after(axis)};
      splits.push_back(split);
    }
  }

  void shrinkSizes() {
    ModelDims dims(model);
    SmallSizes sizes;
    shrinkSequence(dims, sizes);
    for (auto [name, size] : dims.sizes) {
      if (size <= 2 || ShapedType::isDynamic(size))
        continue;
      std::vector<Split> splits = splitsOf(name);
      int64_t least =
          dims.tables.count(name) ? leastTable(size) : leastOfDim(dims, name);
      sizes.dims[name] = leastSize(size, splits, least);
      if (dims.even.count(name))
        sizes.dims[name] = llvm::alignTo(sizes.dims[name], 2);
    }
    for (const auto &[queries, keys] : dims.keysOf)
      shrinkHeads(dims, queries, keys, sizes);
    for (const auto &[name, size] : sizes.dims)
      say("dim " + name, dims.sizes.at(name), size);
    resize(model, sizes);
    small.vocabulary = vocabulary;
    for (const auto &[name, size] : sizes.dims)
      if (dims.sizes.at(name) == static_cast<int64_t>(vocabulary))
        small.vocabulary = static_cast<uint32_t>(size);
  }

  void shrinkSequence(const ModelDims &dims, SmallSizes &sizes) {
    int64_t before = large.batch.sequence;
    int64_t least = std::min<int64_t>(before, 5);
    int64_t after = leastSize(before, splitsOf("sequence"), least);
    small.spec.batch.sequence = static_cast<uint32_t>(after);
    say("batch.sequence", before, after);
    for (int64_t window : dims.windows) {
      std::vector<Split> reach = {{before, after}};
      for (const Split &split : splitsOf("sequence"))
        reach.push_back({llvm::divideCeilSigned(before, split.before),
                         llvm::divideCeilSigned(after, split.after)});
      sizes.windows[window] = leastSize(window, reach, /*least=*/2);
      say("window", window, sizes.windows[window]);
    }
  }

  /// A norm over two elements, say, makes almost the same of all inputs.
  static int64_t leastOfDim(const ModelDims &dims, const std::string &name) {
    constexpr int64_t telling = 5;
    bool isHeads = llvm::any_of(dims.keysOf, [&](const auto &pair) {
      return pair.first == name || pair.second == name;
    });
    return isHeads ? 1 : std::min(dims.sizes.at(name), telling);
  }

  /// As long as a sequence, or longer.
  int64_t leastTable(int64_t size) const {
    return int64_t{small.spec.batch.sequence} +
           (size > int64_t{large.batch.sequence});
  }

  /// Both sizes are whole multiples, of 1 or of more.
  void shrinkHeads(const ModelDims &dims, const std::string &queries,
                   const std::string &keys, SmallSizes &sizes) {
    auto q = dims.sizes.find(queries), k = dims.sizes.find(keys);
    if (q == dims.sizes.end() || k == dims.sizes.end() || queries == keys)
      return;
    int64_t group = q->second / k->second,
            ofKeys = sizes.dims.count(keys) ? sizes.dims[keys] : k->second;
    sizes.dims[keys] = ofKeys;
    std::vector<Split> splits = splitsOf(queries);
    splits.push_back({k->second, ofKeys});
    int64_t ofQueries =
        leastSize(q->second, splits, ofKeys * std::min<int64_t>(group, 2));
    sizes.dims[queries] = llvm::alignTo(ofQueries, ofKeys);
  }

  //===-- the rest ----------------------------------------------------------//

  void shrinkRest() {
    spec::Spec &spec = small.spec;
    spec.collectives.clear();
    spec.memoryPerRankBytes.reset();
    if (large.recompute == spec::Recompute::byBudget)
      spec.memoryPerRankBytes = uint64_t{1} << 40; // it asks for a limit
    if (large.fp8) {
      spec.fp8 = false;
      spec.scaling = spec::Scaling::current;
      spec.weightCasts = spec::WeightCasts::byCount;
      small.said.push_back(
          "precision.matmul \"fp8\" is left out (which products are in 8 bits "
          "goes by the sizes of a rank's parts, so one rank's are others)");
    }
    // Small steps would gain nothing, so nothing would run beside anything.
    if (large.overlap.collectives == spec::When::useful) {
      spec.overlap.collectives = spec::When::always;
      small.said.push_back("overlap.collectives \"auto\" -> \"always\"");
    }
    constexpr uint64_t smallBucket = 1024;
    spec.overlap.bucketBytes =
        std::min<uint64_t>(large.overlap.bucketBytes, smallBucket);
    int64_t tokens = int64_t{spec.batch.micro} * spec.batch.sequence;
    small.headChunk = std::max<int64_t>(1, tokens / 3);
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
