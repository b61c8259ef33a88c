#include "runtime/core/Rank.h"
#include "runtime/core/Checked.h"
#include <algorithm>
#include <cmath>

namespace meshwork::runtime {
namespace {

/// What the plan says this program's library calls need, or what this
/// machine's libraries say, if that is more.
absl::StatusOr<uint64_t> scratchPerThread(const plan::Program &program) {
  absl::StatusOr<uint64_t> here = workspaceBytesPerThread(program);
  if (!here.ok())
    return here;
  uint64_t bytes = 0;
  if (!checkedRoundUp(std::max(*here, program.workspace_bytes_per_thread()), 64,
                      bytes) ||
      bytes > uint64_t{1} << 40)
    return bad("its workspace of ", program.workspace_bytes_per_thread(),
               " bytes a thread is more than a tebibyte");
  return bytes;
}
} // namespace

absl::StatusOr<uint64_t> neededBytes(const plan::Program &program,
                                     int threads) {
  absl::StatusOr<uint64_t> scratch = scratchPerThread(program);
  if (!scratch.ok())
    return scratch;
  uint64_t bytes = 0;
  if (!checkedAdd(program.arena_bytes(),
                  *scratch * static_cast<uint64_t>(threads), bytes))
    return bad("its memory does not fit 64 bits");
  return bytes;
}

absl::StatusOr<std::unique_ptr<Rank>> Rank::create(const RankSetup &setup) {
  const auto &programs = *setup.plan.program_of_rank();
  uint32_t index = programs.Get(programs.size() == 1 ? 0 : setup.rank);
  std::unique_ptr<Rank> rank(
      new Rank(setup, *setup.plan.programs()->Get(index)));
  absl::StatusOr<std::vector<ViewInfo>> views =
      decodeViews(setup.plan, rank->ofPlan);
  MESHWORK_RETURN_IF_ERROR(views.status());
  rank->views = std::move(*views);
  rank->placeViews();
  MESHWORK_RETURN_IF_ERROR(rank->allocate());
  rank->writeCoordinates();
  PrepareContext context{setup.plan,
                         rank->ofPlan,
                         rank->arena.data(),
                         rank->workspace.data(),
                         rank->workspacePerThread,
                         *rank->threads,
                         setup.kernels,
                         rank->shifts};
  for (Phase phase :
       {Phase::once, Phase::step, Phase::microbatch, Phase::update})
    MESHWORK_RETURN_IF_ERROR(rank->bind(phase, context));
  return rank;
}

absl::Status Rank::allocate() {
  // The team first: it pins this thread, and pages come from where it runs.
  threads = std::make_unique<ThreadTeam>(setup.cores.threads, setup.cores.cpus);
  absl::StatusOr<uint64_t> scratch = scratchPerThread(ofPlan);
  MESHWORK_RETURN_IF_ERROR(scratch.status());
  workspacePerThread = *scratch;
  absl::StatusOr<Arena> memory = Arena::create(ofPlan.arena_bytes());
  MESHWORK_RETURN_IF_ERROR(memory.status());
  arena = std::move(*memory);
  memory = Arena::create(workspacePerThread *
                         static_cast<uint64_t>(threads->size()));
  MESHWORK_RETURN_IF_ERROR(memory.status());
  workspace = std::move(*memory);
  return absl::OkStatus();
}

absl::Status Rank::runInline(PreparedCollective &collective, CommTimes &spent) {
  auto parallel = [this](int64_t items,
                         absl::FunctionRef<void(int64_t, int64_t)> body) {
    threads->parallelFor(
        items, [&](int64_t from, int64_t to, int) { body(from, to); });
  };
  MESHWORK_RETURN_IF_ERROR(collective.run(parallel, spent));
  times.waitNs += spent.waitNs;
  times.moveNs += spent.moveNs;
  return absl::OkStatus();
}

/// What the rank is held up here is communication that nothing hid; what the
/// channel did before is not.
absl::Status Rank::runWait(const plan::Wait &wait, Phase phase,
                           uint32_t microbatch, InstructionObserver *observer) {
  Channel &of = channel(wait.channel());
  int64_t start = steadyNs();
  MESHWORK_RETURN_IF_ERROR(of.wait(wait.count()));
  times.moveNs += steadyNs() - start;
  for (const Channel::Ended &one : of.takeEnded())
    if (observer)
      observer->after(phase, one.index, microbatch, one.beginNs, one.endNs,
                      one.times);
  return absl::OkStatus();
}

absl::Status Rank::runList(Phase phase, uint32_t microbatch, uint32_t begin,
                           uint32_t end, InstructionObserver *observer) {
  const std::vector<BoundInstruction> &bound = list(phase);
  end = std::min(end, static_cast<uint32_t>(bound.size()));
  for (auto &channel : channels)
    if (channel && begin == 0)
      channel->restart();
  for (uint32_t i = begin; i < end; ++i) {
    const BoundInstruction &one = bound[i];
    bool skips = one.lastMicrobatch && microbatch + 1 != setup.plan.microbatches();
    if (one.channel > 0) {
      channel(one.channel).start(skips ? nullptr : one.collective.get(), i);
      continue;
    }
    if (skips)
      continue;
    int64_t start = observer ? steadyNs() : 0;
    CommTimes spent;
    if (one.collective)
      MESHWORK_RETURN_IF_ERROR(runInline(*one.collective, spent));
    else if (one.wait)
      MESHWORK_RETURN_IF_ERROR(runWait(*one.wait, phase, microbatch, observer));
    else
      one.compute->run({microbatch});
    if (observer)
      observer->after(phase, i, microbatch, start, steadyNs(), spent);
  }
  return absl::OkStatus();
}

absl::Status Rank::runToLoss(uint64_t step, double learningRate,
                             InstructionObserver *observer) {
  // beta^t in double: 1 - 0.999f^t loses most of its bits in single precision.
  double t = static_cast<double>(step) + 1;
  writeScalar(plan::InputKind::learning_rate, static_cast<float>(learningRate));
  writeScalar(plan::InputKind::bias_correction1,
              static_cast<float>(1 - std::pow(double{setup.plan.beta1()}, t)));
  writeScalar(plan::InputKind::bias_correction2,
              static_cast<float>(1 - std::pow(double{setup.plan.beta2()}, t)));
  MESHWORK_RETURN_IF_ERROR(runList(Phase::step, 0, 0, UINT32_MAX, observer));
  for (uint32_t m = 0; m < setup.plan.microbatches(); ++m) {
    MESHWORK_RETURN_IF_ERROR(loadBatch(step, m));
    MESHWORK_RETURN_IF_ERROR(
        runList(Phase::microbatch, m, 0, UINT32_MAX, observer));
  }
  return runList(Phase::update, 0, 0, ofPlan.loss_ready(), observer);
}

absl::Status Rank::runUpdate(InstructionObserver *observer) {
  return runList(Phase::update, 0, ofPlan.loss_ready(), UINT32_MAX, observer);
}

CommTimes Rank::takeTimes() { return std::exchange(times, CommTimes()); }

} // namespace meshwork::runtime
