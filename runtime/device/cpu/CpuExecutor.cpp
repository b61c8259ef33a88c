#include "runtime/device/cpu/CpuExecutor.h"
#include "lib/Plan/Checked.h"
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
  made->lists.resize(setup.program.table.lists().size());
  for (uint32_t list = 0; list < made->lists.size(); ++list)
    for (uint32_t variant = 0; variant < setup.program.copies.variantsOf(list);
         ++variant) {
      absl::StatusOr<std::vector<Bound>> bound =
          made->bind({list, variant}, moving, context);
      MESHWORK_RETURN_IF_ERROR(bound.status());
      made->lists[list].push_back(std::move(*bound));
    }
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
      Arena::create(setup.program.program.arena_bytes());
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

absl::StatusOr<std::vector<CpuExecutor::Bound>>
CpuExecutor::bind(Where where, RankProgram &program,
                  const PrepareContext &context) {
  const Instructions &sources = listOf(program.program, where.list);
  std::vector<Bound> bound;
  bound.reserve(program.turns[where.list].size());
  for (const plan::Turn &turn : program.turns[where.list]) {
    const plan::Instruction &source = *sources.Get(turn.instruction);
    where.turns = turn.turns;
    program.moveTo(where);
    absl::StatusOr<Bound> one = bindOne(where.list, source, program, context);
    if (!one.ok())
      return absl::Status(one.status().code(),
                          absl::StrCat("instruction ", quote(source.name()),
                                       ": ", one.status().message()));
    one->setsIn = program.setting[where.list][turn.instruction];
    bound.push_back(std::move(*one));
  }
  return bound;
}

absl::StatusOr<CpuExecutor::Bound>
CpuExecutor::bindOne(uint32_t list, const plan::Instruction &source,
                     const RankProgram &program,
                     const PrepareContext &context) {
  Bound bound;
  if ((bound.wait = source.op_as_Wait()))
    return bound;
  if (const plan::Collective *op = source.op_as_Collective()) {
    auto collective = setup.transport.prepare(
        program.rank, program.request(source, arena.data()));
    MESHWORK_RETURN_IF_ERROR(collective.status());
    bound.collective = std::move(*collective);
    bound.channel = op->channel();
    bound.lastOnly = op->last_only();
    if (bound.channel > 0)
      MESHWORK_RETURN_IF_ERROR( // Its thread starts here, not in a step.
          channel(bound.channel).status());
    return bound;
  }
  if (source.op_as_Send() || source.op_as_Receive()) {
    MESHWORK_ASSIGN_OR_RETURN(
        bound.transfer,
        setup.transport.prepareTransfer(
            program.rank, program.pairRequest(list, setup.mesh, arena.data())));
    return bound;
  }
  absl::StatusOr<std::unique_ptr<Executable>> compute =
      prepare(source, context);
  MESHWORK_RETURN_IF_ERROR(compute.status());
  bound.compute = std::move(*compute);
  return bound;
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

absl::Status CpuExecutor::runInline(PreparedCollective &collective,
                                    CommTimes &spent) {
  MESHWORK_RETURN_IF_ERROR(collective.run(onTeam(*threads), spent));
  times.waitNs += spent.waitNs;
  times.moveNs += spent.moveNs;
  return absl::OkStatus();
}

/// What the rank is held up here is communication that nothing hid; what the
/// channel did before is not.
absl::Status CpuExecutor::runWait(const plan::Wait &wait, const ListRun &list,
                                  InstructionObserver *observer) {
  Channel &of = channel(wait.channel());
  int64_t start = steadyNs();
  MESHWORK_RETURN_IF_ERROR(of.wait(wait.count()));
  times.moveNs += steadyNs() - start;
  for (const Channel::Ended &one : of.takeEnded())
    if (observer)
      observer->after(list, one.index, one.beginNs, one.endNs, one.times);
  return absl::OkStatus();
}

absl::Status CpuExecutor::start(PreparedTransfer &transfer,
                                const ListRun &list) {
  underWay[list.action] = {&transfer, list, steadyNs()};
  return transfer.start(onTeam(*threads));
}

/// Those that the action would disturb. Observers are told of each as of an
/// instruction that ran from its start to here.
absl::Status CpuExecutor::awaitTransfers(const ListRun &list,
                                         InstructionObserver *observer) {
  for (uint32_t action : setup.program.transfers.awaitedBy(list.action)) {
    auto found = underWay.find(action);
    if (found == underWay.end())
      continue; // The update runs in parts.
    UnderWay one = found->second;
    underWay.erase(found);
    CommTimes spent;
    MESHWORK_RETURN_IF_ERROR(one.transfer->finish(onTeam(*threads), spent));
    times.waitNs += spent.waitNs;
    times.moveNs += spent.moveNs;
    if (observer)
      observer->after(one.list, 0, one.beginNs, steadyNs(), spent);
  }
  return absl::OkStatus();
}

absl::Status CpuExecutor::run(const ListRun &list,
                              InstructionObserver *observer) {
  MESHWORK_RETURN_IF_ERROR(awaitTransfers(list, observer));
  const std::vector<Bound> &bound =
      lists[list.list][setup.program.copies.variantOf(list.action)];
  uint32_t end = std::min(list.end, static_cast<uint32_t>(bound.size()));
  for (auto &channel : channels)
    if (channel && list.begin == 0)
      channel->restart();
  for (uint32_t i = list.begin; i < end; ++i) {
    const Bound &one = bound[i];
    bool skips = one.lastOnly && !setup.program.table.isLast(list.action);
    if (one.channel > 0) {
      channel(one.channel).start(skips ? nullptr : one.collective.get(), i);
      continue;
    }
    if (skips)
      continue;
    if (one.transfer) {
      MESHWORK_RETURN_IF_ERROR(start(*one.transfer, list));
      continue;
    }
    int64_t begin = observer ? steadyNs() : 0;
    CommTimes spent;
    if (one.collective)
      MESHWORK_RETURN_IF_ERROR(runInline(*one.collective, spent));
    else if (one.wait)
      MESHWORK_RETURN_IF_ERROR(runWait(*one.wait, list, observer));
    else
      one.compute->run({.sets = list.action == one.setsIn});
    if (observer)
      observer->after(list, i, begin, steadyNs(), spent);
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
