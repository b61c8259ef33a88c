#include "lib/Spec/Validate.h"

#include <algorithm>
#include <set>

#include "lib/Optimizer/Optimizer.h"
#include "lib/Spec/Words.h"

namespace meshwork::spec {
namespace {

constexpr uint64_t maxRanks = 1 << 20;
/// A plan has at most twice as many, since key heads may cut each in two.
constexpr size_t maxAxes = 16;

class Validator {
public:
  Validator(const Document &document, const std::string &filename,
            const std::set<std::string> &broken, Spec &spec,
            Diagnostics &diagnostics)
      : document(document), filename(filename), broken(broken), spec(spec),
        diagnostics(diagnostics) {}

  void run() {
    bool hasMesh = sound({"mesh.axes"}) && checkMesh();
    if (hasMesh) {
      completeShard();
      checkShard();
      readBudgets();
    }
    checkPrecision();
    checkTokens();
    if (hasMesh && sound({"shard.batch", "batch.global", "batch.micro"}))
      checkBatch();
    checkBudget();
    checkOwnTable();
    completeOptimizer();
    checkTarget();
    if (!hasErrors(diagnostics))
      checkGradients();
  }

private:
  void error(const std::string &key, const std::string &message) {
    auto entry = document.find(key);
    Location where = entry == document.end() ? Location{filename, 0, 0}
                                             : entry->second.value.where;
    diagnostics.push_back({Severity::error, where, key + ": " + message});
  }

  /// Whether these keys have values that can be compared.
  bool sound(std::initializer_list<const char *> keys) const {
    return std::none_of(keys.begin(), keys.end(),
                        [&](const char *key) { return broken.contains(key); });
  }

  /// What a machine that is named says is known later.
  void checkBudget() {
    if (given("expect.memory_per_rank") || given("target.machine"))
      return;
    for (const auto &[key, message] : withoutBudget(spec))
      if (sound({key.c_str()}))
        error(key, message);
  }

  /// How many microbatches there are is in the table already.
  void checkOwnTable() {
    if (spec.batch.micro == 0 && sound({"batch.micro"}) &&
        (spec.pipeline.schedule.ends_with(".csv") ||
         spec.pipeline.schedule.find('\n') != std::string::npos))
      error("batch.micro",
            "found \"auto\" with a schedule of your own, whose table has a "
            "number of microbatches; give a number of sequences, or choose a "
            "pipeline.schedule by name");
  }

  /// Gives each setting of the kind a value; those of others mean nothing.
  void completeOptimizer() {
    if (!sound({"optimizer.kind"}))
      return;
    const optimizer::Optimizer &chosen = *optimizer::find(spec.optimizer.kind);
    std::string takes;
    for (const optimizer::Setting &setting : chosen.settings) {
      spec.optimizer.settings.try_emplace(setting.name, setting.fallback);
      takes += (takes.empty() ? "" : ", ") + std::string(setting.name);
    }
    std::set<std::string> foreign;
    for (const optimizer::Optimizer &one : optimizer::all())
      for (const optimizer::Setting &setting : one.settings)
        if (!chosen.find(setting.name))
          foreign.insert(setting.name);
    for (const std::string &name : foreign)
      if (given(("optimizer." + name).c_str()))
        error("optimizer." + name, "has no meaning for optimizer.kind " +
                                       quote(chosen.kind) + ", which takes " +
                                       takes + "; leave the line out");
    const optimizer::Setting *lacking =
        chosen.findLacking(spec.optimizer.settings);
    if (lacking && !broken.contains(std::string("optimizer.") + lacking->needs))
      error(std::string("optimizer.") + lacking->name,
            std::string("means nothing without optimizer.") + lacking->needs +
                ", which is 0; give that one, or leave this one out");
  }

  /// Each axis that splits the sequence has a method; those that exchange heads
  /// cut what the others have left.
  void checkContextTable() {
    const std::vector<std::string> axes = axesOf("sequence");
    std::string others, exchanged;
    auto methodOf = [&](const std::string &axis) -> std::optional<Context> {
      for (const AxisContext &one : spec.contextOfAxis)
        if (one.axis == axis)
          return one.method;
      return std::nullopt;
    };
    if (spec.contextOfAxis.empty())
      return;
    for (const AxisContext &one : spec.contextOfAxis)
      if (std::find(axes.begin(), axes.end(), one.axis) == axes.end())
        error("context.method", "names axis " + quote(one.axis) +
                                    ", which does not split the sequence; "
                                    "leave it out, or add it to "
                                    "shard.sequence");
    bool isBehind = false, isOrdered = true;
    for (const std::string &axis : axes) {
      std::optional<Context> method = methodOf(axis);
      bool exchanges = method == Context::ulysses;
      if (!method)
        error("context.method", "says nothing of axis " + quote(axis) +
                                    ", which splits the sequence; add it");
      isOrdered &= exchanges || !isBehind;
      isBehind |= exchanges;
      std::string &list = exchanges ? exchanged : others;
      list += (list.empty() ? "" : ", ") + quote(axis);
    }
    if (!isOrdered)
      error("shard.sequence", "has an axis of \"ulysses\" before one of " +
                                  quote(wordOf(spec.context)) +
                                  "; write it as [" + others + ", " +
                                  exchanged + "]");
  }

  void checkTarget() {
    bool isGpu = spec.device == Device::cuda;
    if (sound({"target.arch", "target.device"}) && spec.arch != "native" &&
        spec.arch.starts_with("sm_") != isGpu)
      error(
          "target.arch",
          "found " + quote(spec.arch) + " with target.device " +
              (isGpu
                   ? R"("cuda", expected "native", "sm_80", "sm_90a" or "sm_100")"
                   : R"("cpu", expected "native", "x86-64-v3" or "x86-64-v4"; or write target.device = "cuda")"));
  }

  bool given(const char *key) const { return document.contains(key); }

  const Axis *findAxis(const std::string &name) const {
    for (const Axis &axis : spec.mesh)
      if (axis.name == name)
        return &axis;
    return nullptr;
  }

  bool checkMesh() {
    size_t before = diagnostics.size();
    std::set<std::string> names;
    uint64_t ranks = 1;
    if (spec.mesh.empty())
      spec.mesh = {{"dp", 1}};
    if (spec.mesh.size() > maxAxes)
      error("mesh.axes", "has " + std::to_string(spec.mesh.size()) +
                             " axes, expected at most " +
                             std::to_string(maxAxes));
    for (const Axis &axis : spec.mesh) {
      if (!names.insert(axis.name).second)
        error("mesh.axes", "has axis " + quote(axis.name) + " twice");
      if (axis.size > 1 && axis.name == "ep")
        error("mesh.axes",
              "not supported by this version: axis " + quote(axis.name) +
                  " of size " + std::to_string(axis.size) +
                  "; give it size 1 and use dp, fsdp or tp for more ranks");
      if (ranks <= maxRanks)
        ranks *= axis.size; // at most 2^40
    }
    if (ranks > maxRanks)
      error("mesh.axes", "makes more than " + std::to_string(maxRanks) +
                             " ranks; use smaller axes");
    return diagnostics.size() == before;
  }

  bool hasRule(const std::string &dim) const {
    return std::any_of(spec.shard.begin(), spec.shard.end(),
                       [&](const ShardRule &rule) { return rule.dim == dim; });
  }

  /// The usual placement (Shoeybi et al., arXiv 1909.08053): samples over the
  /// data-parallel axes; heads, ffn and vocabulary over "tp"; the sequence over
  /// "cp", unless that splits something else.
  void completeShard() {
    std::vector<std::string> data;
    for (const char *name : {"dp", "fsdp"})
      if (findAxis(name))
        data.push_back(name);
    auto complete = [&](const char *dim, const std::vector<std::string> &axes) {
      if (!hasRule(dim) && !axes.empty() &&
          sound({("shard." + std::string(dim)).c_str()}))
        spec.shard.push_back({dim, axes});
    };
    complete("batch", data);
    if (findAxis("pp"))
      complete("layers", {"pp"});
    if (findAxis("tp"))
      for (const char *dim : {"heads", "ffn", "vocab"})
        complete(dim, {"tp"});
    bool isFree = std::none_of(
        spec.shard.begin(), spec.shard.end(), [](const ShardRule &rule) {
          return std::count(rule.axes.begin(), rule.axes.end(), "cp") > 0;
        });
    if (findAxis("cp") && isFree && spec.pins.empty())
      complete("sequence", {"cp"});
    for (const ShardRule &rule : std::vector<ShardRule>(spec.shard))
      if (rule.dim == "heads")
        complete("kv_heads", rule.axes);
    if (spec.zero.stage > 0 && !given("zero.axes") && !data.empty())
      spec.zero.axes = {data.back()};
  }

  /// Names of mesh axes, each once; adds what they name to `used`.
  void checkAxes(const std::string &key, const std::vector<std::string> &list) {
    std::vector<std::string> names;
    for (const Axis &axis : spec.mesh)
      names.push_back(axis.name);
    std::set<std::string> here;
    for (const std::string &name : list)
      if (!findAxis(name))
        error(key, "found axis " + quote(name) + ", expected one of mesh.axes" +
                       suggestion(name, names));
      else if (!here.insert(name).second)
        error(key,
              "found axis " + quote(name) + " again, expected each axis once");
      else
        used.insert(name);
  }

  std::vector<std::string> axesOf(const std::string &dim) const {
    for (const ShardRule &rule : spec.shard)
      if (rule.dim == dim)
        return rule.axes;
    return {};
  }

  /// Dims that stand in one tensor cannot both be split over one axis.
  void checkApart(const std::string &dim, const std::string &other) {
    for (const std::string &axis : axesOf(dim))
      for (const std::string &same : axesOf(other))
        if (axis == same && findAxis(axis) && findAxis(axis)->size > 1)
          error("shard." + dim, "found axis " + quote(axis) +
                                    ", which splits " + quote(other) +
                                    " too; some tensor has both dims, and an "
                                    "axis splits one dim of a tensor");
  }

  /// The residual stream has the parts of the sequence, or parts of those: its
  /// list is of axes beside those of the sequence, or repeats them first.
  void checkResidual() {
    auto splitting = [&](const std::string &dim) {
      std::vector<std::string> axes = axesOf(dim);
      std::erase_if(axes, [&](const std::string &name) {
        const Axis *axis = findAxis(name);
        return !axis || axis->size == 1;
      });
      return axes;
    };
    std::vector<std::string> sequence = splitting("sequence"),
                             residual = splitting("residual_sequence");
    bool isBeside = std::none_of(
        residual.begin(), residual.end(), [&](const std::string &axis) {
          return std::count(sequence.begin(), sequence.end(), axis) > 0;
        });
    bool repeats =
        residual.size() >= sequence.size() &&
        std::equal(sequence.begin(), sequence.end(), residual.begin());
    std::string expected;
    for (const std::string &axis : sequence)
      expected += (expected.empty() ? "" : ", ") + quote(axis);
    if (!isBeside && !repeats)
      error("shard.residual_sequence",
            "has an axis of shard.sequence and does not begin with all of "
            "them; begin with " +
                expected + ", or name none of them");
  }

  void checkShard() {
    size_t before = diagnostics.size();
    for (const ShardRule &rule : spec.shard)
      checkAxes("shard." + rule.dim, rule.axes);
    checkAxes("zero.axes", spec.zero.axes);
    for (const char *dim : {"sequence", "heads", "kv_heads", "ffn", "vocab",
                            "residual_sequence", "embed", "head_dim"})
      checkApart("batch", dim);
    for (const char *dim : {"heads", "kv_heads", "ffn", "vocab"}) {
      checkApart("sequence", dim);
      checkApart("embed", dim);
    }
    checkApart("embed", "residual_sequence");
    checkApart("sequence", "embed");
    checkResidual();
    for (const char *key : {"context.method", "context.layout"})
      if (given(key) && sound({"shard.sequence", "mesh.axes"}) &&
          axesOf("sequence").empty())
        error(key, "has no meaning where no axis splits the sequence; write "
                   "shard.sequence = [\"cp\"], say, or leave the line out");
    if (sound({"shard.sequence", "mesh.axes", "context.method"}) &&
        spec.splits("sequence")) {
      checkContextTable();
      checkRing();
    }
    for (const char *dim : {"experts", "head_dim"})
      for (const std::string &name : axesOf(dim))
        if (findAxis(name) && findAxis(name)->size > 1)
          error(std::string("shard.") + dim,
                "not supported by this version: splitting " + quote(dim) +
                    " over " + quote(name) + "; leave the line out");
    if (sound({"zero.stage", "zero.axes", "zero.gathered"}))
      checkZero();
    if (sound({"shard.layers"}))
      checkPipeline();
    if (diagnostics.size() == before && broken.empty())
      checkAllUsed();
  }

  void checkRing() {
    if (spec.context == Context::ring && spec.ringRanks() > longestRing)
      error("context.method",
            "\"ring\" would go through " + std::to_string(spec.ringRanks()) +
                " ranks, expected at most " + std::to_string(longestRing) +
                "; let some exchange heads (an axis of \"ulysses\"), or write "
                "\"gathered\"");
  }

  /// The one axis that layers are shared out over.
  void checkPipeline() {
    std::vector<std::string> axes;
    for (const std::string &name : axesOf("layers"))
      if (findAxis(name) && findAxis(name)->size > 1)
        axes.push_back(name);
    if (axes.size() > 1)
      error("shard.layers", "found " + std::to_string(axes.size()) +
                                " axes of more than one rank, expected one: "
                                "stages stand in a line; make it one axis of " +
                                "mesh.axes, like \"pp=4\"");
    if (axes.size() == 1)
      spec.pipeline.axis = axes[0];
    for (const ShardRule &rule : spec.shard)
      for (const std::string &axis : rule.axes)
        if (rule.dim != "layers" && axis == spec.pipeline.axis)
          error("shard." + rule.dim,
                "found axis " + quote(axis) +
                    ", which shares out layers (shard.layers): its ranks hold "
                    "different ones, so it splits no other dim");
    if (spec.stageRanks() == 1 && axes.empty())
      checkOneStage();
  }

  /// Keys that mean nothing without a pipeline.
  void checkOneStage() {
    const char *how = " has no meaning without a pipeline; give mesh.axes an "
                      "axis like \"pp=2\", or leave the line out";
    for (const char *key : {"pipeline.virtual_stages", "pipeline.layers"})
      if (given(key))
        error(key, how + 1);
    const std::string &schedule = spec.pipeline.schedule;
    if (sound({"pipeline.schedule"}) && schedule != "1f1b" &&
        schedule != "gpipe")
      error("pipeline.schedule",
            quote(schedule) + how +
                ". \"1f1b\" and \"gpipe\" order the microbatches of one stage");
  }

  void checkZero() {
    if (spec.zero.stage != 3 && given("zero.gathered"))
      error("zero.gathered", "has no meaning in stage " +
                                 std::to_string(spec.zero.stage) +
                                 "; weights are gathered in stage 3 only");
    if (spec.zero.stage == 0 && given("zero.axes"))
      error("zero.axes", "has no meaning in stage 0; write zero.stage = 1, 2 "
                         "or 3, or leave the line out");
    if (spec.zero.stage > 0 && spec.zero.axes.empty())
      error(given("zero.axes") ? "zero.axes" : "zero.stage",
            "splits state over no axis; write zero.axes = [\"dp\"], say");
    std::vector<std::string> data = axesOf("batch");
    for (const std::string &axis : spec.zero.axes)
      if (sound({"shard.batch"}) && findAxis(axis) &&
          findAxis(axis)->size > 1 &&
          std::find(data.begin(), data.end(), axis) == data.end())
        error("zero.axes", "found axis " + quote(axis) +
                               ", expected axes that split the batch "
                               "(shard.batch)");
  }

  void checkAllUsed() {
    for (const Axis &axis : spec.mesh)
      if (axis.size > 1 && !used.contains(axis.name) && spec.pins.empty())
        error("mesh.axes",
              "axis " + quote(axis.name) + " splits nothing; its " +
                  std::to_string(axis.size) +
                  " ranks would repeat each other. Name it in [shard], like " +
                  (axis.name == "cp" ? "sequence" : "batch") + " = [" +
                  quote(axis.name) + "]");
  }

  void readBudgets() {
    std::vector<std::string> names;
    for (const Axis &axis : spec.mesh)
      names.push_back(axis.name);
    for (CollectiveBudget &budget : spec.collectives) {
      std::string wrong, where = quote(budget.text) + ": ";
      std::optional<CollectiveBudget> read = parseBudget(budget.text, wrong);
      if (!read) {
        error("expect.collectives", where + wrong);
        continue;
      }
      read->place = budget.place;
      budget = *read;
      for (const std::string &axis : budget.axes)
        if (!findAxis(axis))
          error("expect.collectives", where + "found axis " + quote(axis) +
                                          ", expected one of mesh.axes" +
                                          suggestion(axis, names));
    }
  }

  void warn(const std::string &key, const std::string &message) {
    error(key, message);
    diagnostics.back().severity = Severity::warning;
  }

  /// Of a spec without errors: a step's microbatches are a whole number.
  void checkGradients() {
    uint32_t count = spec.microbatches();
    if (!given("precision.gradients"))
      spec.gradients = count != 1 ? Type::f32 : spec.compute;
    if (count == 0) // the rest when batch.micro is known
      return;
    else if (spec.gradients == Type::bf16 && count > 1)
      warn("precision.gradients",
           "\"bf16\" rounds the sum of gradients after each of " +
               std::to_string(count) + " microbatches, an error of up to " +
               percentOfBf16Sum(count) +
               "; without the line sums are f32, 2 bytes a parameter more");
  }

  void checkPrecision() {
    if (!sound({"precision.compute"}))
      return;
    if (given("precision.gradients") && spec.compute == Type::f32 &&
        spec.gradients == Type::bf16)
      error("precision.gradients",
            "found \"bf16\" with precision.compute \"f32\", expected \"f32\"");
    if (spec.compute == Type::f32 && spec.rounding == Rounding::stochastic)
      error("precision.rounding",
            "\"stochastic\" has nothing to round with precision.compute "
            "\"f32\", as weights are their masters; leave it out, or set "
            "precision.compute to \"bf16\"");
    if (!spec.fp8 && spec.scaling == Scaling::delayed)
      error("precision.scaling",
            "\"delayed\" has nothing to scale with precision.matmul "
            "\"compute\"; leave it out, or set precision.matmul to \"fp8\"");
    if (spec.fp8 && spec.arch == "sm_80" && sound({"target.arch"}))
      error("precision.matmul",
            "found \"fp8\" with target.arch \"sm_80\", whose tensor cores "
            "multiply nothing of 8 bits; expected \"compute\", or target.arch "
            "\"sm_90a\" or \"sm_100\"");
  }

  void checkTokens() {
    const Batch &batch = spec.batch;
    if (sound({"batch.micro", "batch.sequence"}) &&
        uint64_t{batch.micro} * batch.sequence > INT32_MAX)
      error("batch.micro",
            std::to_string(batch.micro) + " sequences of " +
                std::to_string(batch.sequence) +
                " tokens (batch.sequence) are more than 2147483647 tokens a "
                "microbatch; make one of them smaller");
  }

  void checkBatch() {
    const Batch &batch = spec.batch;
    uint64_t ranks = spec.dataParallel();
    uint64_t unit = std::max<uint64_t>(batch.micro, 1) * ranks;
    if (batch.global % unit == 0)
      return;
    std::string micro =
        batch.micro == 0 ? "\"auto\", from 1 on," : std::to_string(batch.micro);
    uint64_t above = (batch.global / unit + 1) * unit, below = above - unit;
    error("batch.global",
          "found " + std::to_string(batch.global) +
              ", expected a multiple of " + std::to_string(unit) +
              " (batch.micro " + micro + " times " + std::to_string(ranks) +
              " data-parallel ranks), like " +
              (below > 0 ? std::to_string(below) + " or " : "") +
              std::to_string(above));
  }

  const Document &document;
  const std::string &filename;
  const std::set<std::string> &broken;
  Spec &spec;
  Diagnostics &diagnostics;
  std::set<std::string> used; // axes that some rule names
};

} // namespace

void completeAndValidate(const Document &document, const std::string &filename,
                         const std::set<std::string> &broken, Spec &spec,
                         Diagnostics &diagnostics) {
  Validator(document, filename, broken, spec, diagnostics).run();
}

} // namespace meshwork::spec
