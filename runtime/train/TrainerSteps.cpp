// Steps of one rank: to the look at the loss and the norm, on which all ranks
// agree, through the update, to the report.
#include "lib/Plan/Checked.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/machine/Clock.h"
#include "runtime/rank/Schedule.h"
#include "runtime/train/BadStep.h"
#include "runtime/train/Stop.h"
#include "runtime/train/TrainerJob.h"
#include <algorithm>
#include <bit>

namespace meshwork::runtime {
namespace {
// What ranks tell each other once a step, as bits: from `signals` on, one for
// each signal that asks the run to end.
constexpr uint32_t resultIsBad = 1, inputIsBad = 2, outputIsBad = 4,
                   signals = 8, targetsCount = 1u << 28;
constexpr uint32_t goesOn = saveFlags | targetsCount;
constexpr uint32_t stopAfterStep = ~(resultIsBad | inputIsBad | goesOn);

/// What ranks tell of a step that has ended.
struct StepEnd {
  int64_t wallNs = 0;
  CommTimes comm;
  float saturated = -1; // Rank::Look; -1: none
  int64_t turns = -1;   // OpenStep; -1: none
};

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

/// Without times.
StepReport reportOf(const OpenStep &open) {
  StepReport report{
      open.step, open.look.loss, open.look.gradNorm, open.rate, 0, 0, 0, 0};
  report.metrics = open.look.metrics;
  report.tokens = open.tokens;
  return report;
}

/// The same failure, with the step it happened in.
absl::Status inStep(uint64_t step, const absl::Status &status) {
  return withExitCode(
      absl::Status(status.code(),
                   absl::StrCat("step ", step, ": ", status.message())),
      static_cast<ExitCode>(exitCodeOf(status)));
}
} // namespace

/// Where a device runs behind, a step's end is waited for once the next step
/// has begun: the device then has work until the host comes back. What the end
/// of a step decides, whether there is a next one, is known before its update.
absl::Status Trainer::Job::runSteps(uint32_t rank) {
  Rank &me = *ranks[rank];
  MESHWORK_RETURN_IF_ERROR(me.startClock());
  me.takeTimes(); // of what came before the first step
  uint64_t first = begins[rank].at.step;
  MESHWORK_RETURN_IF_ERROR(beginStep(rank, first));
  for (uint64_t step = first;; ++step) {
    std::optional<OpenStep> open;
    MESHWORK_ASSIGN_OR_RETURN(open, updateStep(rank, step));
    if (!open)
      return absl::OkStatus();
    bool savesNow = savers[rank] && savers[rank]->savesNow();
    bool evaluates = evaluatesAfter(step);
    bool isAhead = me.runsBehind() && !open->isLast && !savesNow && !evaluates;
    absl::Status next = isAhead ? beginStep(rank, step + 1) : absl::OkStatus();
    // First: what fails in the next step may be this one's fault, and if not
    // this one is still reported.
    MESHWORK_RETURN_IF_ERROR(closeStep(rank, *open));
    MESHWORK_RETURN_IF_ERROR(next);
    if (evaluates && open->isLast && !options.saveGradients.empty())
      MESHWORK_RETURN_IF_ERROR(keepGradients(rank));
    if (evaluates) {
      MESHWORK_RETURN_IF_ERROR(evaluate(rank, step));
      MESHWORK_RETURN_IF_ERROR(me.restartClock(step));
    }
    if (savesNow)
      MESHWORK_RETURN_IF_ERROR(savers[rank]->saveNow());
    if (open->isLast)
      return absl::OkStatus();
    if (!isAhead)
      MESHWORK_RETURN_IF_ERROR(beginStep(rank, step + 1));
  }
}

absl::Status Trainer::Job::beginStep(uint32_t rank, uint64_t step) {
  Recorder *recorder = recorders[rank].get();
  if (recorder)
    recorder->beginStep(step);
  return ranks[rank]->runToLook(
      step, learningRateAt(options.learningRate, step), recorder);
}

uint32_t Trainer::Job::flagsOf(uint32_t rank, const Rank::Look &look) {
  uint32_t flags = look.isFinite() ? 0 : resultIsBad;
  if (!look.input.ok())
    flags |= inputIsBad;
  if (!ending().ok())
    flags |= outputIsBad;
  if (look.hasTargets)
    flags |= targetsCount;
  if (int signal = options.stop ? options.stop->load() : 0)
    flags |= signals << signal;
  return flags | (savers[rank] ? savers[rank]->flags() : 0);
}

/// Where the run stands once `step` has ended.
Progress Trainer::Job::after(uint32_t rank, uint64_t step) const {
  const Progress &first = begins[rank].at;
  uint64_t ended = step + 1 - first.step;
  uint64_t samples = ended * parts.plan->plan().global_batch();
  return {step + 1, ranks[rank]->updates(), first.samples + samples,
          first.tokens + tokensRead[rank]};
}

/// Of the whole batch, by the lengths of its samples.
uint64_t Trainer::Job::tokensIn(uint32_t rank, uint64_t step) const {
  const plan::Plan &plan = parts.plan->plan();
  uint64_t global = plan.global_batch();
  if (options.samples != "documents")
    return global * plan.sequence();
  const Progress &first = begins[rank].at;
  uint64_t before = first.samples + (step - first.step) * global, sum = 0;
  for (uint32_t i = 0; i < global; ++i)
    sum += parts.tokens->tokensOf(options.seed, {step, i, before + i});
  return sum;
}

/// Nothing when all ranks have stopped before the update.
absl::StatusOr<std::optional<OpenStep>>
Trainer::Job::updateStep(uint32_t rank, uint64_t step) {
  Rank &me = *ranks[rank];
  OpenStep open{step, learningRateAt(options.learningRate, step), {}, {}, false,
                {}};
  MESHWORK_ASSIGN_OR_RETURN(open.look, me.look());
  int64_t arrived = steadyNs();
  uint32_t all = 0;
  MESHWORK_ASSIGN_OR_RETURN(
      all,
      transport->agree(rank, flagsOf(rank, open.look), "the end of a step"));
  int64_t waited = steadyNs() - arrived;
  Saver *saver = savers[rank].get();
  if (saver)
    saver->agreed(all);
  open.isSkipped = maySkip(rank, step, all);
  open.tokens = tokensIn(rank, step);
  if (all & (resultIsBad | inputIsBad) && !open.isSkipped) {
    MESHWORK_RETURN_IF_ERROR(refuseStep(rank, open, all));
    return std::nullopt;
  }
  if (rank == 0 && !(all & targetsCount))
    parts.reporter->note(absl::StrCat(
        "step ", step,
        ": no target of its samples counts, so its loss and gradients are 0; "
        "weights change by momentum and weight decay alone"));
  if (saver && !open.isSkipped) {
    arrived = steadyNs();
    saver->beforeUpdate();
    waited += steadyNs() - arrived;
  }
  tokensRead[rank] += open.tokens;
  MESHWORK_RETURN_IF_ERROR(open.isSkipped
                               ? skipStep(rank, open)
                               : me.runUpdate(recorders[rank].get()));
  open.comm = me.takeTimes();
  open.comm.waitNs += waited;
  open.turns = me.takeMostTurns();
  open.isLast = (all & stopAfterStep) != 0 || step + 1 == options.steps;
  if (uint32_t stop = (all & ~goesOn) / signals;
      stop && step + 1 < options.steps)
    endBecause(stoppedBy(std::countr_zero(stop),
                         absl::StrCat("after step ", step, " of ",
                                      options.steps, ", counted from 0")));
  if (saver) {
    open.saved = saver->toTell();
    saver->afterUpdate(after(rank, step), all);
  }
  return open;
}

/// The same on all ranks. Every step before made an update or was skipped.
bool Trainer::Job::maySkip(uint32_t rank, uint64_t step, uint32_t flags) const {
  uint64_t skipped = step - ranks[rank]->updates();
  return (flags & (resultIsBad | inputIsBad)) == resultIsBad &&
         skipped < options.skipBadSteps;
}

absl::Status Trainer::Job::skipStep(uint32_t rank, const OpenStep &open) {
  absl::Status why =
      explainBadStep(*ranks[rank], *transport, open.step, open.rate, open.look,
                     "the step is skipped, without an update");
  if (!absl::IsDataLoss(why))
    return why;
  if (rank == 0)
    parts.reporter->note(std::string(why.message()));
  return ranks[rank]->skipUpdate();
}

/// Weights stay those of the step before, on all ranks.
absl::Status Trainer::Job::refuseStep(uint32_t rank, const OpenStep &open,
                                      uint32_t flags) {
  const Rank::Look &look = open.look;
  if (!look.input.ok())
    endBecause(inStep(open.step, look.input));
  if (flags & inputIsBad)
    return absl::OkStatus(); // Nothing else of the step means anything.
  if (rank == 0)
    parts.reporter->onRefusedStep(reportOf(open));
  absl::Status why =
      explainBadStep(*ranks[rank], *transport, open.step, open.rate, look,
                     "all ranks stopped before the optimizer");
  if (!absl::IsDataLoss(why))
    return why;
  endBecause(std::move(why));
  return absl::OkStatus();
}

absl::Status Trainer::Job::closeStep(uint32_t rank, const OpenStep &open) {
  StepEnd spent{0, open.comm, open.look.saturated.value_or(-1)};
  if (open.turns)
    spent.turns = *open.turns;
  MESHWORK_ASSIGN_OR_RETURN(spent.wallNs, ranks[rank]->end(open.step));
  // A host that is ahead waits while its device works on the step before.
  spent.comm.waitNs = std::min(
      spent.comm.waitNs, std::max<int64_t>(0, spent.wallNs - open.comm.moveNs));
  StepReport mine = reportOf(open);
  mine.isSkipped = open.isSkipped;
  return transport->gather(rank, bytesOf(spent) + open.saved,
                           [&](absl::Span<const std::string> texts) {
                             report(rank, mine, texts);
                             if (!open.saved.empty())
                               savers[rank]->deliver(texts, sizeof(spent));
                             return absl::OkStatus();
                           });
}

/// The loss and the rest are the same on every rank, but for times.
void Trainer::Job::report(uint32_t rank, StepReport mine,
                          absl::Span<const std::string> times) {
  int64_t wallNs = 0, moveNs = 0, waitNs = 0, turns = -1;
  for (const std::string &text : times) {
    StepEnd of = valueOf<StepEnd>(text);
    // Stages of a pipeline have tensors of their own, other ranks the same.
    if (of.saturated >= 0)
      mine.saturated = std::max(of.saturated, mine.saturated.value_or(0));
    wallNs += of.wallNs;
    moveNs += of.comm.moveNs;
    waitNs += of.comm.waitNs;
    turns = std::max(turns, of.turns);
  }
  // Of an exchange; the first round is in no repeat.
  if (turns >= 0)
    mine.metrics.push_back({"rounds", {}, {static_cast<float>(turns + 1)}});
  double count = static_cast<double>(times.size());
  mine.stepMs = ms(wallNs) / count;
  mine.computeMs = ms(wallNs - moveNs - waitNs) / count;
  mine.commMs = ms(moveNs) / count;
  mine.idleMs = ms(waitNs) / count;
  if (int asks = options.saveNow ? options.saveNow->load() : 0;
      options.checkpoint.empty() && asks != std::exchange(asksTold, asks))
    parts.reporter->note("SIGUSR1: nothing is saved without --checkpoint");
  FileWork work(*transport, rank, "it writes metrics");
  endBecause(parts.reporter->onStep(mine));
}

} // namespace meshwork::runtime
