#include "runtime/core/Trainer.h"
#include "runtime/comm/InProcess.h"
#include "runtime/core/Checked.h"
#include "runtime/core/MeasurePeak.h"
#include "runtime/core/Replay.h"
#include "runtime/core/Schedule.h"
#include "runtime/core/Weights.h"
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace meshwork::runtime {
namespace {
// Flags that ranks agree on once a step.
constexpr uint32_t lossIsBad = 1, stopAfterStep = 2;

Mesh meshOf(const plan::Plan &plan) {
  std::vector<uint32_t> sizes;
  for (const plan::Axis *axis : *plan.mesh())
    sizes.push_back(axis->size());
  return Mesh(std::move(sizes));
}

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }
} // namespace

struct Trainer::Job {
  Job(TrainerParts given, const RunOptions &runOptions, bool spins)
      : parts(std::move(given)), options(runOptions),
        mesh(meshOf(parts.plan->plan())),
        transport(mesh, {options.timeoutSeconds, spins}),
        ranks(mesh.numRanks()), recorders(mesh.numRanks()),
        findings(mesh.numRanks()), times(mesh.numRanks()),
        peaks(mesh.numRanks()) {}

  absl::Status runRank(uint32_t rank);

  TrainerParts parts;
  RunOptions options;
  Mesh mesh;
  InProcessTransport transport;
  Ranks ranks;
  Recorders recorders;

  // Threads that have not ended.
  std::mutex mutex;
  std::condition_variable ended;
  std::vector<bool> hasEnded;
  uint32_t running = 0;
  bool failed = false;

private:
  absl::Status prepareRank(uint32_t rank);
  absl::Status measurePeak(uint32_t rank);
  absl::Status runStep(uint32_t rank, uint64_t step, bool &stop);
  absl::Status explainBadLoss(uint32_t rank, uint64_t step, double rate);
  absl::Status report(uint32_t rank, uint64_t step, double rate);

  // Written by each rank, read by others after a meeting.
  std::vector<std::optional<Finding>> findings;
  struct StepTimes {
    CommTimes comm;
    int64_t wallNs = 0, endedNs = 0; // of the last step; when it ended
  };
  std::vector<StepTimes> times;
  std::vector<double> peaks;
  std::atomic<uint32_t> stepsEnded{0};
};

absl::Status Trainer::Job::prepareRank(uint32_t rank) {
  absl::StatusOr<std::unique_ptr<Rank>> made =
      Rank::create({parts.plan->plan(), rank, mesh, *parts.kernels, transport,
                    parts.tokens.get(), options.seed, parts.cores[rank]});
  MESHWORK_RETURN_IF_ERROR(made.status());
  ranks[rank] = std::move(*made);
  if (!options.trace.empty() || options.profile || !options.profileJson.empty())
    recorders[rank] = std::make_unique<Recorder>(
        *ranks[rank], options.trace.empty() ? 0 : options.traceSteps,
        options.steps);
  MESHWORK_RETURN_IF_ERROR(
      placeWeights(*ranks[rank], parts.weights.get(), options.seed));
  // Nobody computes before everybody has memory and weights.
  MESHWORK_RETURN_IF_ERROR(transport.agree(rank, 0, "the start").status());
  if (options.measurePeak)
    MESHWORK_RETURN_IF_ERROR(measurePeak(rank));
  MESHWORK_RETURN_IF_ERROR(ranks[rank]->runOnce());
  return transport.agree(rank, 0, "the first step").status();
}

absl::Status Trainer::Job::measurePeak(uint32_t rank) {
  absl::StatusOr<double> tflops =
      measureMatmulTflops(parts.plan->plan().compute(), ranks[rank]->team());
  MESHWORK_RETURN_IF_ERROR(tflops.status());
  peaks[rank] = *tflops;
  MESHWORK_RETURN_IF_ERROR(
      transport.agree(rank, 0, "the peak measurement").status());
  if (rank == 0) {
    double sum = 0;
    for (double peak : peaks)
      sum += peak;
    parts.reporter->setPeakTflops(sum);
    resetPeakResident(); // All matrices of the measurement are gone.
  }
  return absl::OkStatus();
}

absl::Status Trainer::Job::runRank(uint32_t rank) {
  MESHWORK_RETURN_IF_ERROR(prepareRank(rank));
  ranks[rank]->takeTimes(); // of what came before the first step
  times[rank].endedNs = steadyNs();
  bool stop = false;
  for (uint64_t step = 0; step < options.steps && !stop; ++step)
    MESHWORK_RETURN_IF_ERROR(runStep(rank, step, stop));
  return absl::OkStatus();
}

absl::Status Trainer::Job::runStep(uint32_t rank, uint64_t step, bool &stop) {
  Rank &me = *ranks[rank];
  Recorder *recorder = recorders[rank].get();
  double rate = learningRateAt(options.learningRate, step);
  if (recorder)
    recorder->beginStep(step);
  MESHWORK_RETURN_IF_ERROR(me.runToLoss(step, rate, recorder));
  uint32_t flags = std::isfinite(me.loss()) ? 0 : lossIsBad;
  if (options.stop && options.stop->load(std::memory_order_relaxed))
    flags |= stopAfterStep;
  int64_t arrived = steadyNs();
  absl::StatusOr<uint32_t> all =
      transport.agree(rank, flags, "the end of a step");
  MESHWORK_RETURN_IF_ERROR(all.status());
  int64_t waited = steadyNs() - arrived;
  if (*all & lossIsBad)
    return explainBadLoss(rank, step, rate);
  MESHWORK_RETURN_IF_ERROR(me.runUpdate(recorder));
  times[rank].comm = me.takeTimes();
  times[rank].comm.waitNs += waited;
  int64_t now = steadyNs();
  times[rank].wallNs = now - std::exchange(times[rank].endedNs, now);
  stop = *all & stopAfterStep;
  return report(rank, step, rate);
}

// The rank that ends the step last reports for all. Nobody can write `times`
// for the next step before this rank has come to the next meeting.
absl::Status Trainer::Job::report(uint32_t rank, uint64_t step, double rate) {
  uint32_t count = static_cast<uint32_t>(ranks.size());
  if ((stepsEnded.fetch_add(1, std::memory_order_acq_rel) + 1) % count != 0)
    return absl::OkStatus();
  int64_t wallNs = 0, moveNs = 0, waitNs = 0;
  for (const StepTimes &of : times) {
    wallNs += of.wallNs;
    moveNs += of.comm.moveNs;
    waitNs += of.comm.waitNs;
  }
  StepReport report{step,
                    ranks[rank]->loss(),
                    ranks[rank]->gradNorm(),
                    rate,
                    ms(wallNs) / count,
                    ms(wallNs - moveNs - waitNs) / count,
                    ms(moveNs) / count,
                    ms(waitNs) / count};
  return parts.reporter->onStep(report);
}

absl::Status Trainer::Job::explainBadLoss(uint32_t rank, uint64_t step,
                                          double rate) {
  float loss = ranks[rank]->loss();
  findings[rank] = scanParameters(*ranks[rank]);
  if (!findings[rank]) {
    NonFiniteScan scan(*ranks[rank]);
    // All ranks repeat the step together, since it communicates.
    MESHWORK_RETURN_IF_ERROR(ranks[rank]->runToLoss(step, rate, &scan));
    findings[rank] = scan.first;
  } else {
    MESHWORK_RETURN_IF_ERROR(ranks[rank]->runToLoss(step, rate, nullptr));
  }
  MESHWORK_RETURN_IF_ERROR(
      transport.agree(rank, 0, "the search for a bad value").status());
  const Finding *first = nullptr;
  for (const std::optional<Finding> &finding : findings)
    if (finding && (!first || finding->key() < first->key()))
      first = &*finding;
  return bad(
      "the loss of step ", step, " is ", loss,
      "; all ranks stopped before the optimizer. ",
      first ? first->text
            : std::string("Repeated, every instruction's output was finite"));
}

Trainer::Trainer(TrainerParts parts, const RunOptions &options) {
  // Threads that spin on a core another rank needs only slow it down.
  size_t threads = 0;
  for (const CoreShare &share : parts.cores)
    threads += static_cast<size_t>(share.threads);
  bool spins = threads <= allowedCpus().size();
  job = std::make_shared<Job>(std::move(parts), options, spins);
}

const Ranks &Trainer::ranks() const { return job->ranks; }
absl::Status Trainer::saveState(const std::string &path, StatePart part) {
  return runtime::saveState(path, part, job->parts.plan->plan(), job->mesh,
                            job->ranks, nullptr);
}
const Recorders &Trainer::recorders() const { return job->recorders; }

absl::Status Trainer::run() {
  uint32_t count = static_cast<uint32_t>(job->ranks.size());
  std::vector<std::thread> threads;
  job->running = count;
  job->hasEnded.assign(count, false);
  for (uint32_t rank = 0; rank < count; ++rank)
    threads.emplace_back([job = job, rank] {
      absl::Status status = job->runRank(rank);
      if (!status.ok())
        job->transport.abort(rank, status);
      std::lock_guard<std::mutex> lock(job->mutex);
      job->failed |= !status.ok();
      job->hasEnded[rank] = true;
      --job->running;
      job->ended.notify_all();
    });
  std::unique_lock<std::mutex> lock(job->mutex);
  job->ended.wait(lock, [&] { return job->running == 0 || job->failed; });
  job->ended.wait_for(lock, std::chrono::seconds(1),
                      [&] { return job->running == 0; });
  std::vector<bool> ended = job->hasEnded;
  lock.unlock();
  for (uint32_t rank = 0; rank < count; ++rank)
    ended[rank] ? threads[rank].join() : threads[rank].detach();
  return job->transport.failure();
}

} // namespace meshwork::runtime
