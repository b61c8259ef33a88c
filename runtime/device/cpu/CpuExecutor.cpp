#include "runtime/device/cpu/CpuExecutor.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/Spaces.h"
#include "runtime/device/cpu/MeasurePeak.h"
#include "runtime/machine/Clock.h"
#include <algorithm>
#include <cstring>

namespace meshwork::runtime {
namespace {

/// What the plan says this program's library calls need, or what this
/// machine's libraries say, if that is more.
absl::StatusOr<uint64_t> scratchPerThread(const plan::Program &program) {
  absl::StatusOr<uint64_t> here = workspaceBytesPerThread(program);
  if (!here.ok())
    return here;
  uint64_t bytes = 0;
  if (!plan::checkedRoundUp(
          std::max(*here, program.workspace_bytes_per_thread()), 64, bytes) ||
      bytes > uint64_t{1} << 40)
    return plan::bad("its workspace of ", program.workspace_bytes_per_thread(),
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
  if (!plan::checkedAdd(plan::bytesOfArenas(program),
                        *scratch * static_cast<uint64_t>(threads), bytes))
    return plan::bad("its memory does not fit 64 bits");
  return bytes;
}

absl::StatusOr<std::unique_ptr<CpuExecutor>>
CpuExecutor::create(const ExecutorSetup &setup, const KernelLibrary &kernels) {
  std::unique_ptr<CpuExecutor> made(new CpuExecutor(setup));
  MESHWORK_RETURN_IF_ERROR(made->allocate());
  RankProgram moving = setup.program; // To where views are each time.
  PrepareContext context{setup.program.plan,
                         setup.program.program,
                         made->arena.data(),
                         made->workspace.data(),
                         made->workspacePerThread,
                         *made->threads,
                         kernels,
                         moving.shifts};
  auto bindCompute = [&](CpuInstruction &bound, uint32_t, uint32_t) {
    absl::StatusOr<std::unique_ptr<Executable>> compute =
        prepare(*bound.source, context);
    if (compute.ok())
      bound.compute = std::move(*compute);
    return compute.status();
  };
  MESHWORK_RETURN_IF_ERROR(
      made->bindLists(moving, made->arena.data(), bindCompute));
  return made;
}

absl::Status CpuExecutor::allocate() {
  // The team first: it pins this thread, and pages come from where it runs.
  threads = std::make_unique<ThreadTeam>(setup.cores.threads, setup.cores.cpus);
  MESHWORK_RETURN_IF_ERROR(threads->status());
  absl::StatusOr<uint64_t> scratch = scratchPerThread(setup.program.program);
  MESHWORK_RETURN_IF_ERROR(scratch.status());
  workspacePerThread = *scratch;
  absl::StatusOr<Arena> memory =
      Arena::create(plan::bytesOfArenas(setup.program.program));
  MESHWORK_RETURN_IF_ERROR(memory.status());
  arena = std::move(*memory);
  memory = Arena::create(workspacePerThread *
                         static_cast<uint64_t>(threads->size()));
  MESHWORK_RETURN_IF_ERROR(memory.status());
  workspace = std::move(*memory);
  return absl::OkStatus();
}

Channel &CpuExecutor::channel(uint32_t number) {
  if (channels.size() < number)
    channels.resize(number);
  std::unique_ptr<Channel> &found = channels[number - 1];
  if (!found)
    found = std::make_unique<Channel>(setup.cores.cpus);
  return *found;
}

/// Channels first: they run what is bound.
CpuExecutor::~CpuExecutor() {
  channels.clear();
  lists.clear();
}

absl::Status CpuExecutor::bindCollective(Bound &bound,
                                         CollectiveRequest request) {
  MESHWORK_ASSIGN_OR_RETURN(
      bound.collective,
      setup.transport.prepare(setup.program.rank, std::move(request)));
  return absl::OkStatus();
}

/// Its thread starts here, not in a step.
absl::Status CpuExecutor::bindChannel(Bound &bound) {
  return channel(bound.channel).status();
}

absl::Status CpuExecutor::bindTransfer(Bound &bound, uint32_t /*list*/,
                                       PairRequest request) {
  MESHWORK_ASSIGN_OR_RETURN(
      bound.transfer,
      setup.transport.prepareTransfer(setup.program.rank, std::move(request)));
  return absl::OkStatus();
}

absl::Status CpuExecutor::write(uint64_t place,
                                absl::Span<const std::byte> bytes) {
  std::memcpy(arena.data() + place, bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status CpuExecutor::read(uint64_t place, absl::Span<std::byte> bytes) {
  std::memcpy(bytes.data(), arena.data() + place, bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<double> CpuExecutor::measureMatmulTflops(plan::DType type) {
  return runtime::measureMatmulTflops(type, *threads);
}

/// The rank's threads, as transports use them.
static auto onTeam(ThreadTeam &team) {
  return
      [&team](int64_t items, absl::FunctionRef<void(int64_t, int64_t)> body) {
        team.parallelFor(
            items, [&](int64_t from, int64_t to, int) { body(from, to); });
      };
}

absl::Status CpuExecutor::meet(const Bound &one, CommTimes &spent) {
  return one.collective->run(onTeam(*threads), spent);
}

/// What runs on a channel has that one thread.
static void alone(int64_t items,
                  absl::FunctionRef<void(int64_t, int64_t)> body) {
  body(0, items);
}

static Channel::Work workOf(const CpuInstruction &one) {
  if (PreparedCollective *collective = one.collective.get())
    return [=](CommTimes &spent) { return collective->run(alone, spent); };
  return [compute = one.compute.get()](CommTimes &) {
    compute->run({.isAlone = true});
    return absl::OkStatus();
  };
}

absl::Status CpuExecutor::start(const Bound &one, bool isSkipped, uint32_t at,
                                CommTimes & /*spent*/) {
  channel(one.channel).start(isSkipped ? nullptr : workOf(one), at);
  return absl::OkStatus();
}

/// The time that the rank is held up here is communication that nothing hid.
/// What the channel did before was hidden.
absl::Status CpuExecutor::join(const plan::Wait &wait, const ListRun &list) {
  Channel &of = channel(wait.channel());
  int64_t start = steadyNs();
  MESHWORK_RETURN_IF_ERROR(of.wait(wait.count()));
  times.moveNs += steadyNs() - start;
  for (const Channel::Ended &one : of.takeEnded())
    if (observer)
      observer->after(list, one.index, one.beginNs, one.endNs, one.times);
  return absl::OkStatus();
}

absl::Status CpuExecutor::startTransfer(const Bound &one,
                                        const ListRun & /*list*/) {
  return one.transfer->start(onTeam(*threads));
}

absl::Status CpuExecutor::finishTransfer(const Bound &one,
                                         const ListRun & /*list*/,
                                         CommTimes &spent) {
  MESHWORK_RETURN_IF_ERROR(one.transfer->finish(onTeam(*threads), spent));
  count(spent);
  return absl::OkStatus();
}

absl::Status CpuExecutor::compute(const Bound &one, bool sets) {
  one.compute->run({.sets = sets});
  return absl::OkStatus();
}

void CpuExecutor::restartChannels() {
  for (auto &channel : channels)
    if (channel)
      channel->restart();
}

absl::Status CpuExecutor::runInstructions(const ListRun &list) {
  for (uint32_t i = list.begin; i < list.end; ++i) {
    const Bound &one = boundOf(list)[i];
    // Of others it is told when they have ended.
    bool tells =
        observer && !one.transfer && one.channel == 0 && !skips(list, i);
    int64_t begin = tells ? steadyNs() : 0;
    CommTimes spent;
    MESHWORK_RETURN_IF_ERROR(perform(list, i, spent));
    count(spent);
    if (tells)
      observer->after(list, i, begin, steadyNs(), spent);
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
