#include "lib/Spec/Validate.h"

#include "lib/Optimizer/Optimizer.h"
#include "lib/Spec/Checks.h"
#include "lib/Spec/KeyKinds.h"
#include "lib/Spec/Unknown.h"
#include "lib/Spec/Words.h"
#include "meshwork/Text/Counted.h"

namespace meshwork::spec {
namespace {

class Validator : Checks {
public:
  explicit Validator(const Checks &checks) : Checks(checks) {}

  void run() {
    bool hasMesh = completeAndCheckSplits(*this);
    if (hasMesh)
      readBudgets();
    checkPrecision();
    checkTokens();
    if (hasMesh && sound({"shard.batch", "batch.global", "batch.micro"}))
      checkBatch();
    checkBudget();
    checkOwnTable();
    completeOptimizer();
    checkOffload(*this);
    checkTarget();
    if (!hasErrors(diagnostics))
      checkGradients();
  }

private:
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
        meaningless("optimizer." + name,
                    "has no meaning for optimizer.kind " + quote(chosen.kind) +
                        ", which takes " + takes + "; leave the line out");
    for (const OptimizerGroup &group : spec.optimizer.groups)
      if (group.weightDecay != 1 &&
          spec.optimizer.settings[optimizer::weightDecay] == 0)
        error("optimizer.groups",
              "group " + quote(group.name) +
                  " has a factor of optimizer.weight_decay, which is 0; give "
                  "that one, or leave the factor out");
    const optimizer::Setting *lacking =
        chosen.findLacking(spec.optimizer.settings);
    if (lacking && !broken.contains(std::string("optimizer.") + lacking->needs))
      meaningless(std::string("optimizer.") + lacking->name,
                  std::string("means nothing without optimizer.") +
                      lacking->needs +
                      ", which is 0; give that one, or leave this one out");
  }

  void checkTarget() {
    if (!sound({"target.arch", "target.device"}))
      return;
    Key arch;
    arch.section = "target";
    arch.name = "arch";
    arch.choices = architectures(spec.device);
    if (std::count(arch.choices.begin(), arch.choices.end(), spec.arch) == 0)
      error("target.arch", "found " + quote(spec.arch) +
                               " with target.device " +
                               quote(wordOf(spec.device)) + ", expected " +
                               listed(arch.choices) + hintOfArch(arch));
  }

  /// The word may be of the other device, or mean one of its architectures.
  std::string hintOfArch(const Key &arch) const {
    Value found;
    found.kind = Value::Kind::string;
    found.text = spec.arch;
    std::string hint = hintOfChoice(arch, found);
    for (const Word<Device> &device : words<Device>())
      for (const std::string &one : architectures(device.value))
        if (device.value == spec.device)
          break;
        else if (one == spec.arch)
          return "; or write target.device = " + quote(device.text);
        else if (hint.starts_with("; write " + quote(one)))
          return "; write target.device = " + quote(device.text) +
                 " and target.arch = " + hint.substr(8);
    return hint;
  }

  void readBudgets() {
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
          error("expect.collectives", where + unknownAxis(axis));
    }
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
               counted(count, "microbatch") + ", an error of up to " +
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
    if (spec.reductionOrder == ReductionOrder::any &&
        spec.device == Device::cpu && sound({"target.device"}))
      warn("precision.reduction_order",
           "\"any\" changes nothing with target.device \"cpu\": CPUs add up in "
           "the order of the ranks; leave it out, or set target.device to "
           "\"cuda\"");
    if (!spec.fp8 && spec.scaling == Scaling::delayed)
      error("precision.scaling",
            "\"delayed\" has nothing to scale with precision.matmul "
            "\"compute\"; leave it out, or set precision.matmul to \"fp8\"");
    if (!spec.fp8 && spec.weightCasts != WeightCasts::byCount)
      error("precision.weight_casts",
            "found \"" + std::string(wordOf(spec.weightCasts)) +
                "\", but with precision.matmul \"compute\" no weight is cast; "
                "leave it out, or set precision.matmul to \"fp8\"");
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
            counted(batch.micro, "sequence") + " of " +
                counted(batch.sequence, "token") +
                " (batch.sequence) are more than 2147483647 tokens a "
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
};

} // namespace

void completeAndValidate(const Document &document, const std::string &filename,
                         const std::set<std::string> &broken, Spec &spec,
                         Diagnostics &diagnostics) {
  Validator(Checks(document, filename, broken, spec, diagnostics)).run();
}

} // namespace meshwork::spec
