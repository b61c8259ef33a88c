// Before the first step: memory, states, what saves them.
#include "lib/Plan/Checked.h"
#include "runtime/machine/Memory.h"
#include "runtime/train/TrainerJob.h"

namespace meshwork::runtime {

absl::Status Trainer::Job::prepareRank(uint32_t rank) {
  absl::StatusOr<std::unique_ptr<Rank>> made =
      Rank::create({parts.plan->plan(), rank, mesh, *parts.device, *transport,
                    parts.tokens.get(), options.seed, parts.cores[rank],
                    parts.evalTokens != nullptr});
  MESHWORK_RETURN_IF_ERROR(made.status());
  ranks[rank] = std::move(*made);
  if (!options.trace.empty() || options.profile || !options.profileJson.empty())
    recorders[rank] = std::make_unique<Recorder>(
        *ranks[rank], options.trace.empty() ? 0 : options.traceSteps,
        options.steps);
  MESHWORK_RETURN_IF_ERROR(placeStates(rank));
  MESHWORK_RETURN_IF_ERROR(makeSaver(rank));
  // Nobody computes before everybody has memory and weights.
  MESHWORK_RETURN_IF_ERROR(transport->agree(rank, 0, "the start").status());
  if (options.measurePeak)
    MESHWORK_RETURN_IF_ERROR(measurePeak(rank));
  MESHWORK_RETURN_IF_ERROR(ranks[rank]->runOnce());
  return transport->agree(rank, 0, "the first step").status();
}

absl::Status Trainer::Job::placeStates(uint32_t rank) {
  if (parts.resume)
    return resume(rank);
  FileWork work(*transport, rank, "it places weights");
  return placeWeights(*ranks[rank], parts.weights.get(), options.seed);
}

/// The process of rank 0 alone changes the folder, and tells of it.
absl::Status Trainer::Job::resume(uint32_t rank) {
  Begin &begin = begins[rank];
  MESHWORK_ASSIGN_OR_RETURN(
      begin.at, parts.resume->restore(*ranks[rank], *transport, settings));
  if (begin.at.step < options.beginsWith)
    return plan::bad("goes on from step ", begin.at.step, ", but ",
                     quote(options.plan), " begins with step ",
                     options.beginsWith,
                     " (--then): newer checkpoints are damaged; --resume with "
                     "the folder of the one that is good lets the plan before "
                     "go on");
  ranks[rank]->startAt(begin.at);
  if (rank == 0)
    MESHWORK_ASSIGN_OR_RETURN(begin.isSaved, parts.resume->continuesThere());
  uint32_t all = 0;
  MESHWORK_ASSIGN_OR_RETURN(
      all, transport->agree(rank, begin.isSaved ? 1 : 0, "the resume"));
  begin.isSaved = all != 0;
  if (rank != 0)
    return absl::OkStatus();
  MESHWORK_RETURN_IF_ERROR(parts.reporter->startAt(begin.at));
  for (const std::string &line : parts.resume->told())
    parts.reporter->note(line);
  return absl::OkStatus();
}

absl::Status Trainer::Job::makeSaver(uint32_t rank) {
  if (!options.checkpoint.empty())
    MESHWORK_ASSIGN_OR_RETURN(
        savers[rank],
        Saver::create({parts.plan->plan(), *ranks[rank], *transport, options,
                       manifests, begins[rank].at, begins[rank].isSaved, cpus,
                       !ranks[rank]->isOnHost() || !parts.cores[rank].isFull}));
  return absl::OkStatus();
}

absl::Status Trainer::Job::measurePeak(uint32_t rank) {
  absl::StatusOr<double> tflops = ranks[rank]->measureMatmulTflops();
  MESHWORK_RETURN_IF_ERROR(tflops.status());
  absl::StatusOr<std::vector<std::string>> peaks =
      transport->exchange(rank, bytesOf(*tflops), "the peak measurement");
  MESHWORK_RETURN_IF_ERROR(peaks.status());
  if (rank == 0) {
    double sum = 0;
    for (const std::string &peak : *peaks)
      sum += valueOf<double>(peak);
    parts.reporter->setPeakTflops(sum);
    resetPeakResident(); // All matrices of the measurement are gone.
  }
  return absl::OkStatus();
}

absl::Status Trainer::Job::runRank(uint32_t rank) {
  MESHWORK_RETURN_IF_ERROR(prepareRank(rank));
  uint64_t done = begins[rank].at.step;
  if (options.steps > done)
    MESHWORK_RETURN_IF_ERROR(runSteps(rank));
  else if (options.evaluate)
    MESHWORK_RETURN_IF_ERROR(evaluate(rank, done > 0 ? done - 1 : 0));
  return savers[rank] ? savers[rank]->finish() : absl::OkStatus();
}

} // namespace meshwork::runtime
