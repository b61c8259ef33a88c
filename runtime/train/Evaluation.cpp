// Forward passes between steps, over other samples than those of training.
#include "runtime/train/Evaluation.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/Checked.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/machine/Clock.h"
#include "runtime/train/TrainerJob.h"
#include <algorithm>
#include <map>

namespace meshwork::runtime {

double EvaluationSteps::weight(uint64_t step) const {
  if (step <= windows / global)
    return 1;
  auto filled = static_cast<double>(global - windows % global);
  return -filled / static_cast<double>(global);
}

double EvaluationSteps::targets(const std::vector<uint64_t> &ofSteps) const {
  double sum = 0;
  for (uint64_t k = 0; k < count(); ++k)
    sum += weight(k) * static_cast<double>(ofSteps[k]);
  return sum;
}

double EvaluationSteps::mean(const std::vector<float> &losses,
                             const std::vector<uint64_t> &ofSteps) const {
  double sum = 0, all = targets(ofSteps);
  for (uint64_t k = 0; k < count(); ++k)
    if (ofSteps[k] > 0)
      sum += weight(k) * static_cast<double>(ofSteps[k]) * double{losses[k]};
  return all > 0 ? sum / all : 0;
}

namespace {
/// Of each step: the targets that a rank has, as it tells the others. Those
/// with one part of the batch have the same.
std::string textOf(uint32_t shard, const std::vector<uint64_t> &targets) {
  std::string text = bytesOf(shard);
  for (uint64_t one : targets)
    text += bytesOf(one);
  return text;
}

std::vector<uint64_t> sumOver(absl::Span<const std::string> ranks,
                              size_t steps) {
  std::map<uint32_t, std::vector<uint64_t>> ofShards;
  for (const std::string &text : ranks) {
    auto &most = ofShards[valueOf<uint32_t>(text)];
    most.resize(steps);
    for (size_t k = 0; k < steps; ++k)
      most[k] =
          std::max(most[k], valueOf<uint64_t>(text.substr(
                                sizeof(uint32_t) + k * sizeof(uint64_t))));
  }
  std::vector<uint64_t> sums(steps);
  for (const auto &[shard, counts] : ofShards)
    for (size_t k = 0; k < steps; ++k)
      sums[k] += counts[k];
  return sums;
}
} // namespace

uint64_t Trainer::Job::evaluatedWindows() const {
  uint64_t all = parts.evalTokens->numWindows();
  return options.evalSteps
             ? uint64_t{*options.evalSteps} * parts.plan->plan().global_batch()
             : all;
}

/// A run that is asked to stop does not take the time.
bool Trainer::Job::evaluatesAfter(uint64_t step) const {
  bool isDue = options.evalEvery && (step + 1) % *options.evalEvery == 0;
  return parts.evalTokens && (isDue || step + 1 == options.steps);
}

/// An evaluation uses the memory of gradients. Where many ranks are here, one
/// of their threads reads from all of them, which rest until it is done.
absl::Status Trainer::Job::keepGradients(uint32_t rank) {
  const char *what = "gradients that are written before an evaluation";
  MESHWORK_RETURN_IF_ERROR(transport->agree(rank, 0, what).status());
  if (rank == 0 || parts.processes->areMany()) {
    FileWork work(*transport, rank, "it writes gradients");
    gradientsSaved = saveState(options.saveGradients, StatePart::gradient);
  }
  return transport->agree(rank, 0, what).status();
}

/// Of one step; whether all ranks go on.
absl::StatusOr<bool> Trainer::Job::evaluateStep(uint32_t rank,
                                                const EvaluationSteps &steps,
                                                uint64_t k, float &loss) {
  Rank &me = *ranks[rank];
  MESHWORK_RETURN_IF_ERROR(me.runEvaluation(
      {*parts.evalTokens, steps.firstWindow(k), steps.lastWindow()}));
  absl::StatusOr<Rank::Look> look = me.look();
  MESHWORK_RETURN_IF_ERROR(look.status());
  loss = look->loss;
  if (!look->input.ok())
    endBecause(withExitCode(
        absl::Status(look->input.code(),
                     absl::StrCat("evaluation: ", look->input.message())),
        static_cast<ExitCode>(exitCodeOf(look->input))));
  uint32_t all = 0, asksToStop = options.stop && options.stop->load() ? 1 : 0;
  MESHWORK_ASSIGN_OR_RETURN(
      all, transport->agree(rank, look->input.ok() ? asksToStop : 1,
                            "the end of a step of an evaluation"));
  return all == 0;
}

absl::Status Trainer::Job::evaluate(uint32_t rank, uint64_t step) {
  EvaluationSteps steps(evaluatedWindows(), parts.plan->plan().global_batch());
  std::vector<float> losses(steps.count());
  std::vector<uint64_t> targets;
  int64_t began = steadyNs();
  for (uint64_t k = 0; k < steps.count(); ++k) {
    bool goesOn = false;
    MESHWORK_ASSIGN_OR_RETURN(goesOn, evaluateStep(rank, steps, k, losses[k]));
    if (!goesOn)
      return absl::OkStatus();
    targets.push_back(ranks[rank]->targets());
  }
  return transport->gather(
      rank, textOf(ranks[rank]->shard(), targets),
      [&](absl::Span<const std::string> texts) {
        std::vector<uint64_t> sums = sumOver(texts, steps.count());
        double loss = steps.mean(losses, sums);
        manifests.evaluated(step + 1, loss);
        FileWork work(*transport, rank, "it writes metrics");
        endBecause(parts.reporter->onEvaluation(
            {step, loss, steps.targets(sums),
             static_cast<double>(steadyNs() - began) / 1e6}));
        return absl::OkStatus();
      });
}

} // namespace meshwork::runtime
