#include "runtime/run/CheckOptions.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Types.h"
#include "meshwork/Text/Counted.h"
#include "meshwork/Text/Escape.h"
#include "runtime/rank/OptionTable.h"
#include "runtime/save/Resume.h"
#include "runtime/train/RunFiles.h"
#include <cmath>
#include <numeric>

namespace meshwork::runtime {
namespace {
/// More threads than this in one process is a mistake, not a machine.
constexpr uint32_t maxRanks = 1024;

template <typename... Parts> absl::Status usage(const Parts &...parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

/// Those that are not whole; a default may say that there is none.
absl::Status checkNumbers(const RunOptions &options) {
  RunOptions given = options, defaults;
  for (const OptionRow &row : optionTable()) {
    OptionField field = row.field(given);
    if (double **number = std::get_if<double *>(&field);
        number && !isAllowed(row, **number) &&
        **number != *std::get<double *>(row.field(defaults)))
      return usage(row.name, " is ", **number, ", expected ",
                   allowedNumbers(row));
  }
  return absl::OkStatus();
}

} // namespace

/// A trace and gradients are of one plan.
static absl::Status checkThen(const RunOptions &o) {
  if (o.then.empty())
    return absl::OkStatus();
  if (o.checkpoint.empty())
    return usage("--then needs --checkpoint: the next plan goes on from one");
  for (auto [isGiven, name] :
       {std::pair{!o.trace.empty(), "--trace"},
        std::pair{!o.profileJson.empty(), "--profile-json"},
        std::pair{o.profile, "--profile"},
        std::pair{!o.saveGradients.empty(), "--save-gradients"}})
    if (isGiven)
      return usage("--then and ", name,
                   " exclude each other: it tells of one plan");
  return absl::OkStatus();
}

/// What is said of evaluations fits together.
static absl::Status checkEvaluation(const RunOptions &o) {
  bool evaluates = !o.evalData.empty() || o.heldOut > 0;
  if (o.evalEvery && !evaluates)
    return usage("--eval-every is given, but neither --eval-data nor "
                 "--held-out");
  if (!o.evalData.empty() && o.steps == 0 && !o.evaluate)
    return usage("--eval-data is given, but there is no step: give --steps, or "
                 "--evaluate to evaluate the weights as they are");
  if (o.keepBest && o.checkpoint.empty())
    return usage("--keep-best needs --checkpoint");
  if (o.keepBest && o.checkpointEvery &&
      std::lcm(uint64_t{*o.checkpointEvery},
               uint64_t{o.evalEvery.value_or(1)}) >= o.steps)
    return usage("--keep-best is given, but no step before the last is both "
                 "evaluated (--eval-every ",
                 o.evalEvery.value_or(1), ") and saved (--checkpoint-every ",
                 *o.checkpointEvery, "): make one a multiple of the other");
  return absl::OkStatus();
}

absl::Status checkOptions(const RunOptions &o) {
  const LearningRate &lr = o.learningRate;
  MESHWORK_RETURN_IF_ERROR(checkNumbers(o));
  if (lr.minimum > lr.rate)
    return usage("--min-lr is ", lr.minimum, ", expected 0 to --lr, which is ",
                 lr.rate);
  if (lr.shape == LearningRate::Shape::constant &&
      (lr.minimum > 0 || lr.decaySteps > 0))
    return usage(lr.minimum > 0 ? "--min-lr" : "--decay-steps",
                 " is given, but --schedule constant does not decay: give "
                 "--schedule cosine, linear or wsd, or leave the option out");
  bool isStable = lr.shape == LearningRate::Shape::warmupStableDecay;
  if (isStable != (lr.stableSteps > 0))
    return usage(isStable
                     ? "--schedule wsd needs --stable-steps"
                     : "--stable-steps is given, but --schedule is not wsd",
                 ": these are the steps with --lr between warmup and decay");
  uint64_t last = lr.decaySteps > 0 ? lr.decaySteps : o.steps;
  if (isStable && o.steps > 0 && last <= lr.warmupSteps + lr.stableSteps)
    return usage("--stable-steps is ", lr.stableSteps, ", with ",
                 lr.warmupSteps, " --warmup-steps: the decay ends after step ",
                 last, ", expected more (--decay-steps, or --steps)");
  // Of the whole run it is the default, with which a run may end in its warmup.
  if (lr.shape != LearningRate::Shape::constant && lr.decaySteps > 0 &&
      lr.decaySteps < o.steps && lr.decaySteps <= lr.warmupSteps)
    return usage("--decay-steps is ", lr.decaySteps, ", with ", lr.warmupSteps,
                 " --warmup-steps: a decay ends after them, expected more");
  if (o.documentBegin && o.documentEnd)
    return usage("--document-begin and --document-end exclude each other: give "
                 "the one that tells documents apart");
  if (o.logEvery == 0u)
    return usage("--log-every is 0, expected 1 or more");
  if (o.threads < 0 || o.threads > 4096)
    return usage("--threads is ", o.threads, ", expected 0 to 4096");
  if (o.steps > INT32_MAX)
    return usage("--steps is ", o.steps, ", expected at most ", INT32_MAX);
  MESHWORK_RETURN_IF_ERROR(checkFileNames(o));
  if (o.steps > 0 && o.data.empty() && !o.validateOnly)
    return usage("--data is needed for ", counted(o.steps, "step"));
  MESHWORK_RETURN_IF_ERROR(checkEvaluation(o));
  MESHWORK_RETURN_IF_ERROR(checkThen(o));
  if (o.order != "random" && o.order != "epochs")
    return usage("--order is ", quote(o.order), ", expected random or epochs");
  if (!o.samples.empty() && o.samples != "windows" && o.samples != "documents")
    return usage("--samples is ", quote(o.samples),
                 ", expected windows or documents");
  MESHWORK_RETURN_IF_ERROR(dataWeights(o).status());
  if (o.steps == 0 && !o.saveGradients.empty())
    return usage("--save-gradients needs at least one step");
  return checkResumeOptions(o);
}

absl::StatusOr<std::vector<double>> dataWeights(const RunOptions &o) {
  std::vector<double> weights;
  if (o.dataWeights.empty())
    return weights;
  for (const std::string &text :
       std::vector<std::string>(absl::StrSplit(o.dataWeights, ','))) {
    double weight = 0;
    if (!absl::SimpleAtod(text, &weight) || !std::isfinite(weight) ||
        weight <= 0)
      return usage("--data-weights ", quote(o.dataWeights), ": found ",
                   quote(text),
                   ", expected a number above 0 for each --data, "
                   "like 0.7,0.3");
    weights.push_back(weight);
  }
  if (weights.size() != o.data.size())
    return usage("--data-weights ", quote(o.dataWeights), ": found ",
                 counted(weights.size(), "number"), ", expected ",
                 o.data.size(), ", one for each --data");
  return weights;
}

absl::Status checkRanks(const plan::Plan &plan, const RunOptions &options,
                        const Processes &processes, uint32_t &ranks) {
  ranks = 1;
  for (const plan::Axis *axis : *plan.mesh())
    ranks *= axis->size();
  if (options.ranks != 0 && options.ranks != ranks)
    return usage("-n is ", options.ranks, ", the plan is for ",
                 counted(ranks, "rank"),
                 ": leave -n out, or compile for another mesh");
  if (ranks > maxRanks && !processes.areMany())
    return absl::ResourceExhaustedError(
        absl::StrCat("the plan is for ", counted(ranks, "rank"),
                     ", one process runs at most ", maxRanks));
  return absl::OkStatus();
}

absl::Status checkMasks(const plan::Plan &plan, const TokenSource &tokens) {
  std::vector<std::string> masks = tokens.masks();
  if (masks.empty() || plan::reads(plan, plan::InputKind::inner_targets))
    return absl::OkStatus();
  return usage(quote(masks[0]),
               " leaves targets out of the loss, but the plan counts all: "
               "compile it with --set batch.document_end_loss=false, or move "
               "the mask away");
}

/// A mixture of experts tells how often they are chosen.
static bool hasExperts(const plan::Plan &plan) {
  for (const plan::Program *program : *plan.programs())
    if (program->results())
      for (const plan::Result *result : *program->results())
        if (result->name() && result->name()->str() == "expert_load")
          return true;
  return false;
}

absl::Status checkSamples(const plan::Plan &plan, const RunOptions &o) {
  if (o.samples != "documents")
    return absl::OkStatus();
  if (!plan::reads(plan, plan::InputKind::inner_targets))
    return usage(
        "--samples documents pads samples, but the plan counts all "
        "targets: compile it with --set batch.document_end_loss=false");
  if (o.documentBegin || o.documentEnd)
    return usage("--samples documents goes by the index of a Megatron pair: "
                 "leave --document-begin and --document-end out");
  if (hasExperts(plan))
    return usage("--samples documents pads samples, and a mixture of experts "
                 "would send padding to experts: take --samples windows");
  return absl::OkStatus();
}

absl::StatusOr<DocumentMarks> documentMarks(const plan::Plan &plan,
                                            const RunOptions &o) {
  using From = DocumentMarks::From;
  bool given = o.documentBegin || o.documentEnd;
  if (!plan::readsDocuments(plan)) {
    if (given)
      return usage(o.documentBegin ? "--document-begin" : "--document-end",
                   " is given, but the plan does not tell documents apart: "
                   "compile it with --set 'batch.documents=\"separate\"', "
                   "'batch.positions=\"document\"' or "
                   "batch.document_end_loss=false, or leave the option out");
    return DocumentMarks{};
  }
  if (!given)
    return DocumentMarks{From::index};
  return o.documentBegin ? DocumentMarks{From::beginToken, *o.documentBegin}
                         : DocumentMarks{From::endToken, *o.documentEnd};
}

} // namespace meshwork::runtime
