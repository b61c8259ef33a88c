// What [zero], [context] and [pipeline] say of axes that split something.
#include "lib/Spec/Checks.h"
#include "lib/Spec/ScheduleNames.h"
#include "lib/Spec/Words.h"
#include "meshwork/Text/Counted.h"

namespace meshwork::spec {
namespace {

class Strategies : Checks {
public:
  explicit Strategies(const Checks &checks) : Checks(checks) {}

  void run() {
    for (const char *key : {"context.method", "context.layout"})
      if (given(key) && sound({"shard.sequence", "mesh.axes"}) &&
          axesOf("sequence").empty())
        meaningless(key,
                    "has no meaning where no axis splits the sequence; write "
                    "shard.sequence = [\"cp\"], say, or leave the line out");
    if (sound({"shard.sequence", "mesh.axes", "context.method"}) &&
        spec.splits("sequence")) {
      checkContextTable();
      checkRing();
    }
    checkExperts();
    if (sound({"zero.stage", "zero.axes", "zero.gathered"}))
      checkZero();
    if (sound({"overlap.matmul", "overlap.collectives"}))
      checkMatmulInChunks();
    if (sound({"shard.layers"}))
      checkPipeline();
  }

private:
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

  void checkBalance() {
    if (given("experts.balance_coefficient") &&
        spec.experts.balance == Balance::none)
      meaningless(
          "experts.balance_coefficient",
          "has no meaning with experts.balance = \"none\"; leave one of the "
          "lines out");
    if (given("experts.group") && spec.experts.balance == Balance::none &&
        !spec.experts.capacity && sound({"experts.capacity"}))
      meaningless("experts.group",
                  "has no meaning with experts.balance = \"none\" and without "
                  "experts.capacity; leave the line out");
  }

  /// The number of sequences that groups divide, with its name: a rank must see
  /// all whose choices share an expert's room. Before batch.micro is chosen,
  /// what it divides.
  std::pair<uint64_t, std::string> groupedSequences() const {
    uint64_t micro = spec.batch.micro, ranks = spec.dataParallel();
    if (micro == 0 && !spec.experts.capacity)
      return {spec.batch.global, "batch.global"};
    if (micro == 0)
      return {spec.batch.global / ranks, "batch.global / data-parallel ranks"};
    if (spec.experts.capacity)
      return {micro, "batch.micro: with experts.capacity one rank has a group"};
    return {micro * ranks,
            "batch.micro times " + counted(ranks, "data-parallel rank")};
  }

  void checkGroup() {
    auto [all, name] = groupedSequences();
    uint64_t group = spec.experts.group;
    if (all % group == 0)
      return;
    uint64_t below = std::min(group, all), above = group;
    while (all % below != 0)
      --below;
    while (above < all && all % above != 0)
      ++above;
    error("experts.group",
          "found " + std::to_string(group) + ", expected a divisor of " +
              std::to_string(all) + " (" + name + "), like " +
              std::to_string(below) +
              (above < all ? " or " + std::to_string(above) : ""));
  }

  void checkExperts() {
    checkBalance();
    if (sound({"experts.group", "experts.capacity", "mesh.axes", "shard.batch",
               "batch.global", "batch.micro"}))
      checkGroup();
    if (!sound({"shard.experts", "mesh.axes", "experts.exchange"}))
      return;
    for (const char *key : {"experts.exchange", "experts.bound"})
      if (given(key) && axesOf("experts").empty())
        meaningless(key,
                    "has no meaning where no axis splits experts; write "
                    "shard.experts = [\"ep\"], say, or leave the line out");
    if (given("experts.bound") && spec.experts.exchange == Exchange::gathered)
      meaningless("experts.bound", "has no meaning where tokens are gathered "
                                   "(experts.exchange); leave the line out");
  }

  void checkRing() {
    if (spec.context == Context::ring && spec.ringRanks() > longestRing)
      error("context.method",
            "\"ring\" would go through " + counted(spec.ringRanks(), "rank") +
                ", expected at most " + std::to_string(longestRing) +
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
      error("shard.layers", "found " + counted(axes.size(), "axis", "axes") +
                                " of more than one rank, expected one: "
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
    if (axesOf("layers").empty())
      checkNoPipeline();
    else if (spec.stageRanks() == 1)
      checkOneStage();
  }

  /// A pipeline of one rank, as a spec for more has when it is scaled down: any
  /// schedule by name then means 1F1B or GPipe, and stages on one rank are one.
  void checkOneStage() {
    const std::string &schedule = spec.pipeline.schedule;
    if (sound({"pipeline.schedule"}) && !readWord<Schedule>(schedule))
      error("pipeline.schedule",
            "found a table of your own with one rank along " +
                quote(axesOf("layers")[0]) +
                ", expected a schedule by name; with one rank \"1f1b\" and "
                "\"gpipe\" are all orders that there are");
  }

  /// Keys that mean nothing without a pipeline.
  void checkNoPipeline() {
    const char *how = " has no meaning without a pipeline; give mesh.axes an "
                      "axis like \"pp=2\", or leave the line out";
    for (const char *key : {"pipeline.virtual_stages", "pipeline.layers"})
      if (given(key))
        meaningless(key, how + 1);
    const std::string &schedule = spec.pipeline.schedule;
    if (sound({"pipeline.schedule"}) && schedule != "1f1b" &&
        schedule != "gpipe")
      meaningless(
          "pipeline.schedule",
          quote(schedule) + how +
              ". \"1f1b\" and \"gpipe\" order the microbatches of one stage");
  }

  void checkZero() {
    if (spec.zero.stage != 3 && given("zero.gathered"))
      meaningless("zero.gathered",
                  "has no meaning in stage " + std::to_string(spec.zero.stage) +
                      "; weights are gathered in stage 3 only");
    if (spec.zero.stage < 2 && given("zero.reduce"))
      meaningless("zero.reduce",
                  "has no meaning in stage " + std::to_string(spec.zero.stage) +
                      ", where gradients are reduced once a step; "
                      "write zero.stage = 2 or 3, or leave the line "
                      "out");
    checkWeightsOfZero();
    checkGradientsOfZero();
    if (spec.zero.stage == 0 && given("zero.axes"))
      meaningless("zero.axes",
                  "has no meaning in stage 0; write zero.stage = 1, 2 "
                  "or 3, or leave the line out");
    if (spec.zero.stage > 0 && sound({"shard.batch"}))
      checkAxesOfState();
    if (spec.zero.stage == 3 && !spec.zero.inner.empty())
      checkGathered();
  }

  /// FP8 products have copies of their own, which gathers move.
  void checkWeightsOfZero() {
    const Zero &zero = spec.zero;
    if (zero.stage != 3 && given("zero.weights"))
      meaningless("zero.weights", "has no meaning in stage " +
                                      std::to_string(zero.stage) +
                                      "; weights are gathered in stage 3 only");
    if (!spec.fp8 || zero.weights == WeightType::compute)
      return;
    if (zero.weights == WeightType::int8)
      error("zero.weights",
            "found \"int8\" with precision.matmul \"fp8\", whose products "
            "read weights in FP8; write \"fp8\", so that these travel");
    else if (spec.weightCasts == WeightCasts::microbatch)
      error("zero.weights",
            "found \"fp8\" with precision.weight_casts \"microbatch\", which "
            "rounds weights after they have travelled; write \"step\" there, "
            "or leave that line out");
  }

  void checkMatmulInChunks() {
    const Overlap &overlap = spec.overlap;
    if (overlap.matmul == When::never) {
      if (given("overlap.chunks"))
        meaningless(
            "overlap.chunks",
            "has no meaning with overlap.matmul \"never\"; write \"auto\" "
            "there, or leave the line out");
    } else if (overlap.collectives == When::never) {
      error("overlap.matmul",
            "found " + quote(wordOf(overlap.matmul)) +
                " with overlap.collectives \"never\", which lets no chunk "
                "travel beside a product; write \"auto\" there, or leave "
                "overlap.matmul out");
    }
  }

  void checkGradientsOfZero() {
    if (spec.zero.stage == 0 && given("zero.gradients"))
      meaningless(
          "zero.gradients",
          "has no meaning in stage 0, where gradients are all_reduced as "
          "they are; write zero.stage = 1, 2 or 3, or leave the line out");
    if (spec.zero.gradients == GradientType::precision)
      for (const char *key : {"zero.gradient_block", "zero.gradient_error"})
        if (given(key))
          meaningless(key,
                      "has no meaning with zero.gradients \"precision\"; write "
                      "\"int8\" or \"int4\" there, or leave the line out");
  }

  /// Of the axes that a weight is stored over, it is gathered over some for
  /// each use, and over the others before.
  void checkGathered() {
    std::set<std::string> here;
    for (const std::string &axis : spec.zero.inner)
      if (!here.insert(axis).second)
        error("zero.gathered",
              "found axis " + quote(axis) + " again, expected each axis once");
      else if (std::count(spec.zero.axes.begin(), spec.zero.axes.end(), axis) ==
               0)
        error("zero.gathered",
              "found axis " + quote(axis) + ", expected axes of zero.axes (" +
                  listOf(spec.zero.axes) + "); add it there, or leave it out");
    if (here.size() == spec.zero.axes.size() &&
        spec.zero.gatheredOnce().empty())
      error("zero.gathered",
            "names all of zero.axes, so that nothing is left to gather once a "
            "step: that is \"free\"; write it, or add an axis to zero.axes");
  }

  static std::string listOf(const std::vector<std::string> &axes) {
    std::string list;
    for (const std::string &axis : axes)
      list += (list.empty() ? "[" : ", ") + quote(axis);
    return list + "]";
  }

  /// State is split over ranks that have different tokens.
  void checkAxesOfState() {
    std::vector<std::string> data = axesOf("batch");
    for (const std::string &axis : axesOf("sequence"))
      data.push_back(axis);
    std::string instead = data.empty() ? "no axis of the mesh does; add one to "
                                         "mesh.axes, like \"dp=2\", or leave "
                                         "[zero] out"
                                       : "write zero.axes = " + listOf(data);
    if (spec.zero.axes.empty())
      error(given("zero.axes") ? "zero.axes" : "zero.stage",
            "splits state over no axis, expected axes that split the batch or "
            "the "
            "sequence; " +
                instead);
    std::set<std::string> here;
    for (const std::string &axis : spec.zero.axes)
      if (!here.insert(axis).second)
        error("zero.axes",
              "found axis " + quote(axis) + " again, expected each axis once");
      else if (bool isSmall = findAxis(axis) && findAxis(axis)->size == 1;
               !isSmall && std::count(data.begin(), data.end(), axis) == 0)
        error("zero.axes", "found axis " + quote(axis) +
                               ", expected axes that split the batch "
                               "or the sequence (shard.batch, "
                               "shard.sequence); " +
                               instead);
  }
};

} // namespace

void checkStrategies(const Checks &checks) { Strategies(checks).run(); }

} // namespace meshwork::spec
