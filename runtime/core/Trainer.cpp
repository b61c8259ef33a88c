#include "runtime/core/Trainer.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/base/StartThread.h"
#include "runtime/core/BadStep.h"
#include "runtime/core/Checked.h"
#include "runtime/core/CoreClaims.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Saver.h"
#include "runtime/core/Schedule.h"
#include "runtime/core/Stop.h"
#include "runtime/core/Weights.h"
#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace meshwork::runtime {
namespace {
// What ranks tell each other once a step, as bits: from `signals` on, one for
// each signal that asks the run to end.
constexpr uint32_t resultIsBad = 1, inputIsBad = 2, outputIsBad = 4,
                   signals = 8;
constexpr uint32_t stopAfterStep = ~(resultIsBad | inputIsBad | saveFlags);

Mesh meshOf(const plan::Plan &plan) {
  std::vector<uint32_t> sizes;
  for (const plan::Axis *axis : *plan.mesh())
    sizes.push_back(axis->size());
  return Mesh(std::move(sizes));
}

struct StepTimes {
  int64_t wallNs = 0;
  CommTimes comm;
};

/// A step whose end has not been waited for.
struct OpenStep {
  uint64_t step = 0;
  double rate = 0;
  Rank::Look look;
  CommTimes comm;
  bool isLast = false;
  std::string saved; // what the step's end tells of a save
  bool isSkipped = false;
};

/// Where a rank's run begins, and whether that is in --checkpoint already.
struct Begin {
  Progress at;
  bool isSaved = false;
};

/// Plain values on their way between ranks.
template <typename T> std::string bytesOf(const T &value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof(value));
}
template <typename T> T valueOf(const std::string &bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof(value), bytes.size()));
  return value;
}

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

/// The same failure, with the step it happened in.
absl::Status inStep(uint64_t step, const absl::Status &status) {
  return withExitCode(
      absl::Status(status.code(),
                   absl::StrCat("step ", step, ": ", status.message())),
      static_cast<ExitCode>(exitCodeOf(status)));
}
} // namespace

struct Trainer::Job {
  Job(TrainerParts given, const RunOptions &runOptions, bool spins)
      : parts(std::move(given)), options(runOptions),
        mesh(meshOf(parts.plan->plan())),
        transport(parts.processes->makeTransport(mesh, options.timeoutSeconds,
                                                 spins)),
        manifests(parts.plan, options, parts.reporter), ranks(mesh.numRanks()),
        begins(mesh.numRanks()), savers(mesh.numRanks()),
        recorders(mesh.numRanks()), cpus(allowedCpus()) {}

  /// Ranks use the device, and both ask the transport until they have ended.
  ~Job() {
    savers.clear();
    ranks.clear();
    parts.device.reset();
  }

  absl::Status runRank(uint32_t rank);

  TrainerParts parts;
  RunOptions options;
  Mesh mesh;
  std::shared_ptr<Transport> transport;
  ManifestWriter manifests;
  Ranks ranks;
  std::vector<Begin> begins;                  // one per rank
  std::vector<std::unique_ptr<Saver>> savers; // null without --checkpoint
  Recorders recorders;
  std::vector<int> cpus; // of this process, before ranks are pinned

  // Threads that have not ended.
  std::mutex mutex;
  std::condition_variable ended;
  std::vector<bool> hasEnded;
  uint32_t running = 0;
  bool failed = false;

  /// The run ends, but with weights as they should be; the first says why.
  void endBecause(absl::Status why);
  absl::Status ending();

private:
  absl::Status prepareRank(uint32_t rank);
  absl::Status placeStates(uint32_t rank);
  absl::Status resume(uint32_t rank);
  absl::Status measurePeak(uint32_t rank);
  absl::Status makeSaver(uint32_t rank);
  absl::Status runSteps(uint32_t rank);
  absl::Status beginStep(uint32_t rank, uint64_t step);
  Progress after(uint32_t rank, uint64_t step) const;
  uint32_t flagsOf(uint32_t rank, const Rank::Look &look);
  absl::StatusOr<std::optional<OpenStep>> updateStep(uint32_t rank,
                                                     uint64_t step);
  bool maySkip(uint32_t rank, uint64_t step, uint32_t flags) const;
  absl::Status skipStep(uint32_t rank, const OpenStep &open);
  absl::Status refuseStep(uint32_t rank, const OpenStep &open, uint32_t flags);
  absl::Status closeStep(uint32_t rank, const OpenStep &open);
  void report(uint32_t rank, StepReport mine,
              absl::Span<const std::string> times);

  absl::Status whyEnded; // guarded by `mutex`
  int asksTold = 0;      // signals for a checkpoint, where none is made
};

void Trainer::Job::endBecause(absl::Status why) {
  std::lock_guard<std::mutex> lock(mutex);
  whyEnded.Update(std::move(why));
}

absl::Status Trainer::Job::ending() {
  std::lock_guard<std::mutex> lock(mutex);
  return whyEnded;
}

absl::Status Trainer::Job::prepareRank(uint32_t rank) {
  absl::StatusOr<std::unique_ptr<Rank>> made =
      Rank::create({parts.plan->plan(), rank, mesh, *parts.device, *transport,
                    parts.tokens.get(), options.seed, parts.cores[rank]});
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
  MESHWORK_ASSIGN_OR_RETURN(begin.at,
                            parts.resume->restore(*ranks[rank], *transport));
  ranks[rank]->startAt(begin.at);
  if (rank == 0)
    MESHWORK_ASSIGN_OR_RETURN(begin.isSaved, parts.resume->continuesThere());
  uint32_t all = 0;
  MESHWORK_ASSIGN_OR_RETURN(
      all, transport->agree(rank, begin.isSaved ? 1 : 0, "the resume"));
  begin.isSaved = all != 0;
  if (rank != 0)
    return absl::OkStatus();
  parts.reporter->startAt(begin.at.samples);
  for (const std::string &line : parts.resume->told())
    parts.reporter->note(line);
  return absl::OkStatus();
}

absl::Status Trainer::Job::makeSaver(uint32_t rank) {
  if (!options.checkpoint.empty())
    MESHWORK_ASSIGN_OR_RETURN(
        savers[rank],
        Saver::create({parts.plan->plan(), *ranks[rank], *transport, options,
                       manifests, begins[rank].at, begins[rank].isSaved,
                       cpus}));
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
  if (options.steps > begins[rank].at.step)
    MESHWORK_RETURN_IF_ERROR(runSteps(rank));
  return savers[rank] ? savers[rank]->finish() : absl::OkStatus();
}

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
    bool isAhead = me.runsBehind() && !open->isLast;
    absl::Status next = isAhead ? beginStep(rank, step + 1) : absl::OkStatus();
    // First: what fails in the next step may be this one's fault, and if not
    // this one is still reported.
    MESHWORK_RETURN_IF_ERROR(closeStep(rank, *open));
    MESHWORK_RETURN_IF_ERROR(next);
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
  if (int signal = options.stop ? options.stop->load() : 0)
    flags |= signals << signal;
  return flags | (savers[rank] ? savers[rank]->flags() : 0);
}

/// Where the run stands once `step` has ended.
Progress Trainer::Job::after(uint32_t rank, uint64_t step) const {
  const Progress &first = begins[rank].at;
  uint64_t ended = step + 1 - first.step;
  return {step + 1, ranks[rank]->updates(),
          first.samples + ended * parts.plan->plan().global_batch()};
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
  if (all & (resultIsBad | inputIsBad) && !open.isSkipped) {
    MESHWORK_RETURN_IF_ERROR(refuseStep(rank, open, all));
    return std::nullopt;
  }
  if (saver && !open.isSkipped) {
    arrived = steadyNs();
    saver->beforeUpdate();
    waited += steadyNs() - arrived;
  }
  MESHWORK_RETURN_IF_ERROR(open.isSkipped
                               ? skipStep(rank, open)
                               : me.runUpdate(recorders[rank].get()));
  open.comm = me.takeTimes();
  open.comm.waitNs += waited;
  open.isLast = (all & stopAfterStep) != 0 || step + 1 == options.steps;
  if (uint32_t stop = (all & ~saveFlags) / signals;
      stop && step + 1 < options.steps)
    endBecause(stoppedBy(std::countr_zero(stop),
                         absl::StrCat("after step ", step, " of ",
                                      options.steps, ", counted from 0")));
  if (saver) {
    open.saved = saver->toTell();
    MESHWORK_RETURN_IF_ERROR(saver->afterUpdate(after(rank, step), all));
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
    parts.reporter->onRefusedStep(
        {open.step, look.loss, look.gradNorm, open.rate, 0, 0, 0, 0});
  absl::Status why =
      explainBadStep(*ranks[rank], *transport, open.step, open.rate, look,
                     "all ranks stopped before the optimizer");
  if (!absl::IsDataLoss(why))
    return why;
  endBecause(std::move(why));
  return absl::OkStatus();
}

absl::Status Trainer::Job::closeStep(uint32_t rank, const OpenStep &open) {
  StepTimes spent{0, open.comm};
  MESHWORK_ASSIGN_OR_RETURN(spent.wallNs, ranks[rank]->end(open.step));
  // A host that is ahead waits while its device works on the step before.
  spent.comm.waitNs = std::min(
      spent.comm.waitNs, std::max<int64_t>(0, spent.wallNs - open.comm.moveNs));
  StepReport mine{
      open.step, open.look.loss, open.look.gradNorm, open.rate, 0, 0, 0, 0};
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
  int64_t wallNs = 0, moveNs = 0, waitNs = 0;
  for (const std::string &text : times) {
    StepTimes of = valueOf<StepTimes>(text);
    wallNs += of.wallNs;
    moveNs += of.comm.moveNs;
    waitNs += of.comm.waitNs;
  }
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

Trainer::Trainer(TrainerParts parts, const RunOptions &options) {
  // Threads that spin on a core another rank needs only slow it down.
  size_t threads = 0;
  for (const CoreShare &share : parts.cores)
    threads += static_cast<size_t>(share.threads);
  // Or another run: cores that were to be pinned to and are not are its own.
  bool spins = threads <= allowedCpus().size() &&
               (!options.pin || !pinnedCpus(parts.cores).empty());
  job = std::make_shared<Job>(std::move(parts), options, spins);
}

const Ranks &Trainer::ranks() const { return job->ranks; }
namespace {
class MpiBlocks : public BlockExchange {
public:
  explicit MpiBlocks(MpiTransport &transport) : transport(transport) {}
  absl::Status toRoot(uint32_t from, absl::Span<float> values) override {
    return transport.toFirst(from, values);
  }

private:
  MpiTransport &transport;
};
} // namespace

absl::Status Trainer::saveState(const std::string &path, StatePart part) {
  std::unique_ptr<BlockExchange> blocks;
  if (MpiTransport *mpi = job->parts.processes->mpiTransport())
    blocks = std::make_unique<MpiBlocks>(*mpi);
  return runtime::saveState(path, part, job->parts.plan->plan(), job->mesh,
                            job->ranks, blocks.get());
}

absl::Status Trainer::saveTrace(const std::string &path) {
  MpiTransport *mpi = job->parts.processes->mpiTransport();
  int64_t origin = traceOrigin(job->recorders);
  if (!mpi)
    return writeTrace(path, {traceText(job->ranks, job->recorders, origin)});
  uint32_t rank = job->parts.processes->rank();
  absl::StatusOr<std::vector<std::string>> origins =
      mpi->exchange(rank, bytesOf(origin), "the end");
  MESHWORK_RETURN_IF_ERROR(origins.status());
  for (const std::string &other : *origins)
    origin = std::min(origin, valueOf<int64_t>(other));
  return mpi->gather(rank, traceText(job->ranks, job->recorders, origin),
                     [&](absl::Span<const std::string> texts) {
                       return writeTrace(path, texts);
                     });
}

const Recorders &Trainer::recorders() const { return job->recorders; }
absl::Status Trainer::ending() const { return job->ending(); }
absl::Status Trainer::checkpointStatus() const {
  absl::Status status = job->manifests.status();
  return withExitCode(status, ExitCode::inputOutput);
}

/// A device may hang, and to free its memory is to wait for it.
static void keepForever(const std::shared_ptr<Trainer::Job> &job) {
  static auto *const kept = new std::vector<std::shared_ptr<Trainer::Job>>();
  kept->push_back(job);
}

absl::Status Trainer::run() {
  uint32_t count = static_cast<uint32_t>(job->ranks.size());
  std::vector<std::thread> threads(count);
  for (const CoreShare &share : job->parts.cores)
    job->running += share.threads > 0;
  job->hasEnded.assign(count, false);
  auto end = [job = job](uint32_t rank, const absl::Status &status) {
    if (!status.ok())
      job->transport->abort(rank, status);
    std::lock_guard<std::mutex> lock(job->mutex);
    job->failed |= !status.ok();
    job->hasEnded[rank] = true;
    --job->running;
    job->ended.notify_all();
  };
  for (uint32_t rank = 0; rank < count; ++rank) {
    if (job->parts.cores[rank].threads == 0)
      continue;
    absl::Status started = startThread(threads[rank], [job = job, rank, end] {
      end(rank, job->runRank(rank));
    });
    if (!started.ok())
      end(rank, started);
  }
  std::unique_lock<std::mutex> lock(job->mutex);
  job->ended.wait(lock, [&] { return job->running == 0 || job->failed; });
  job->ended.wait_for(lock, std::chrono::seconds(1),
                      [&] { return job->running == 0; });
  std::vector<bool> ended = job->hasEnded;
  lock.unlock();
  for (uint32_t rank = 0; rank < count; ++rank)
    if (threads[rank].joinable())
      ended[rank] ? threads[rank].join() : threads[rank].detach();
  absl::Status failure = job->transport->failure();
  if (absl::IsDeadlineExceeded(failure))
    keepForever(job);
  return failure;
}

} // namespace meshwork::runtime
