#include "runtime/train/Trainer.h"
#include "lib/Plan/Checked.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/base/StartThread.h"
#include "runtime/machine/CoreClaims.h"
#include "runtime/train/TrainerJob.h"
#include <algorithm>
#include <thread>

namespace meshwork::runtime {

Trainer::Job::Job(TrainerParts given, const RunOptions &runOptions, bool spins)
    : parts(std::move(given)), options(runOptions),
      mesh(meshOf(parts.plan->plan())),
      transport(
          parts.processes->makeTransport(mesh, options.timeoutSeconds, spins)),
      settings(runSettings(options, parts.plan->plan(), parts.tokens.get())),
      manifests(parts.plan, options, settings, parts.reporter),
      ranks(mesh.numRanks()), begins(mesh.numRanks()),
      tokensRead(mesh.numRanks()), savers(mesh.numRanks()),
      recorders(mesh.numRanks()), cpus(allowedCpus()) {}

Trainer::Job::~Job() {
  savers.clear();
  ranks.clear();
  parts.device.reset();
}

void Trainer::Job::endBecause(absl::Status why) {
  std::lock_guard<std::mutex> lock(mutex);
  whyEnded.Update(std::move(why));
}

absl::Status Trainer::Job::ending() {
  std::lock_guard<std::mutex> lock(mutex);
  return whyEnded;
}

Trainer::Trainer(TrainerParts parts, const RunOptions &options) {
  // Threads that spin on a core another rank needs only slow it down.
  size_t threads = 0;
  for (const CoreShare &share : parts.cores)
    threads += static_cast<size_t>(share.threads);
  // Or another run: cores that were to be pinned to and are not are its own.
  bool spins = threads <= usableCores() &&
               (!options.pin || !pinnedCpus(parts.cores).empty());
  job = std::make_shared<Job>(std::move(parts), options, spins);
}

const Ranks &Trainer::ranks() const { return job->ranks; }
namespace {
class MessageBlocks : public BlockExchange {
public:
  explicit MessageBlocks(MessageTransport &transport) : transport(transport) {}
  absl::Status toRoot(uint32_t from, absl::Span<float> values) override {
    return transport.toFirst(from, values);
  }

private:
  MessageTransport &transport;
};
} // namespace

absl::Status Trainer::Job::saveState(const std::string &path, StatePart part) {
  std::unique_ptr<BlockExchange> blocks;
  if (MessageTransport *all = parts.processes->messages())
    blocks = std::make_unique<MessageBlocks>(*all);
  return runtime::saveState(path, part, parts.plan->plan(), mesh, ranks,
                            blocks.get());
}

absl::Status Trainer::saveMasters(const std::string &path) {
  return job->saveState(path, StatePart::master);
}

absl::Status Trainer::saveGradients() {
  return job->gradientsSaved
             ? *job->gradientsSaved
             : job->saveState(job->options.saveGradients, StatePart::gradient);
}

absl::Status Trainer::saveTrace(const std::string &path) {
  MessageTransport *all = job->parts.processes->messages();
  int64_t origin = traceOrigin(job->recorders);
  if (!all)
    return writeTrace(path, job->parts.plan->plan(),
                      {traceText(job->ranks, job->recorders, origin)});
  uint32_t rank = job->parts.processes->rank();
  absl::StatusOr<std::vector<std::string>> origins =
      all->exchange(rank, bytesOf(origin), "the end");
  MESHWORK_RETURN_IF_ERROR(origins.status());
  for (const std::string &other : *origins)
    origin = std::min(origin, valueOf<int64_t>(other));
  return all->gather(rank, traceText(job->ranks, job->recorders, origin),
                     [&](absl::Span<const std::string> texts) {
                       return writeTrace(path, job->parts.plan->plan(), texts);
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
