#include "runtime/device/cuda/CudaExecutor.h"
#include "absl/strings/str_cat.h"
#include "runtime/device/cuda/Beside.h"
#include <algorithm>
#include <cstring>
#include <sys/prctl.h>

namespace meshwork::runtime::cuda {
namespace {
bool hasMatmul(const plan::Program &program) {
  for (uint32_t list = 0; list < plan::orEmpty(program.lists()).size(); ++list)
    for (const plan::Instruction *instruction : plan::listOf(program, list))
      if (instruction->op_type() == plan::Operation::Matmul)
        return true;
  return false;
}
} // namespace

absl::StatusOr<std::unique_ptr<CudaExecutor>>
CudaExecutor::create(const ExecutorSetup &setup, const CudaSetup &cuda) {
  std::unique_ptr<CudaExecutor> made(new CudaExecutor(setup, cuda));
  MESHWORK_RETURN_IF_ERROR(made->allocate());
  uint64_t workspaceBytes = setup.program.program.workspace_bytes_per_thread();
  RankProgram moving = setup.program; // To where views are each time.
  OperationContext context{cuda.gpu,
                           moving,
                           setup.mesh,
                           made->arena.address(),
                           made->hostMemory.data(),
                           made->workspace.address(),
                           workspaceBytes,
                           made->blas.get(),
                           made->dnn.get(),
                           cuda.wgmma,
                           made->main->stream(),
                           cuda.tunes,
                           cuda.tunes && !cuda.cudnnAttention,
                           nullptr,
                           nullptr,
                           nullptr};
  MESHWORK_RETURN_IF_ERROR(made->countMultiprocessors());
  if (setup.program.rank == 0 && made->multiprocessors > 0)
    cuda.overlap = made->tellOverlap();
  if (cuda.tunes)
    MESHWORK_RETURN_IF_ERROR(made->shareTuning(context));
  context.epilogues = &cuda.epilogues;
  context.dnnNotes = &cuda.dnnNotes;
  context.wgmmaNotes = &cuda.wgmmaNotes;
  MESHWORK_RETURN_IF_ERROR(made->bindAll(moving, context));
  // After binding: candidates of products are timed on this memory.
  MESHWORK_RETURN_IF_ERROR(made->clearPersistent());
  return made;
}

absl::Status CudaExecutor::bindAll(RankProgram &moving,
                                   OperationContext &context) {
  std::vector<std::vector<uint32_t>> beside; // by list
  for (uint32_t list = 0; list < moving.table.lists().size(); ++list)
    beside.push_back(channelsBeside(plan::listOf(moving.program, list)));
  auto bindCompute = [&](Bound &bound, uint32_t list,
                         uint32_t instruction) -> absl::Status {
    context.multiprocessors =
        multiprocessorsOfProducts(beside[list][instruction]);
    MESHWORK_ASSIGN_OR_RETURN(bound.compute,
                              makeOperation(*bound.source, context));
    return absl::OkStatus();
  };
  return bindLists(moving, reinterpret_cast<std::byte *>(arena.address()),
                   bindCompute);
}

absl::Status CudaExecutor::allocate() {
  MESHWORK_RETURN_IF_ERROR(cuda.gpu.makeCurrent());
  // This thread naps while it waits for the GPU, which waits for it in turn;
  // by default the system wakes it 50 us late.
  constexpr unsigned long slackNs = 1000;
  (void)::prctl(PR_SET_TIMERSLACK, slackNs, 0, 0, 0);
  threads = std::make_unique<ThreadTeam>(setup.cores.threads, setup.cores.cpus);
  MESHWORK_RETURN_IF_ERROR(threads->status());
  MESHWORK_ASSIGN_OR_RETURN(main,
                            Queue::create(cuda.gpu, owner(), /*urgent=*/false));
  MESHWORK_RETURN_IF_ERROR(progress.open(cuda.gpu, owner()));
  MESHWORK_ASSIGN_OR_RETURN(staging, Staging::create(cuda.gpu, *main));
  // It follows no work of the rank: copies end by themselves.
  MESHWORK_ASSIGN_OR_RETURN(
      beside.queue, Queue::create(cuda.gpu,
                                  {setup.program.rank, setup.transport, nullptr,
                                   nullptr, cuda.timeoutSeconds},
                                  /*urgent=*/false));
  MESHWORK_ASSIGN_OR_RETURN(beside.staging,
                            Staging::create(cuda.gpu, *beside.queue));
  const plan::Program &program = setup.program.program;
  std::shared_ptr<RegisteredMemory> registered;
  MESHWORK_ASSIGN_OR_RETURN(registered,
                            cuda.transport.allocate(program.arena_bytes()));
  if (registered)
    arena = DeviceMemory::ownedBy(registered, registered->address());
  else
    MESHWORK_ASSIGN_OR_RETURN(
        arena, DeviceMemory::create(cuda.gpu, program.arena_bytes()));
  if (program.host_bytes() > 0)
    MESHWORK_ASSIGN_OR_RETURN(
        hostMemory, PinnedMemory::create(cuda.gpu, program.host_bytes()));
  MESHWORK_ASSIGN_OR_RETURN(
      workspace,
      DeviceMemory::create(cuda.gpu, program.workspace_bytes_per_thread()));
  if (hasMatmul(program))
    MESHWORK_ASSIGN_OR_RETURN(blas, BlasLt::create(cuda.gpu.driver()));
  if (cuda.cudnnAttention || cuda.tunes) {
    absl::StatusOr<std::unique_ptr<Dnn>> made = Dnn::create(cuda.gpu);
    if (!made.ok() && cuda.cudnnAttention)
      return made.status();
    if (made.ok())
      dnn = *std::move(made);
  }
  return absl::OkStatus();
}

/// Blocks of parameters may end before their buffers do.
absl::Status CudaExecutor::clearPersistent() {
  const Driver &driver = cuda.gpu.driver();
  const plan::Program &program = setup.program.program;
  for (const plan::Buffer *buffer : *program.buffers()) {
    if (!buffer->persistent() || buffer->size_bytes() == 0)
      continue;
    uint64_t place = plan::placeOf(program, *buffer);
    if (std::byte *at = onHost(place))
      std::memset(at, 0, buffer->size_bytes());
    else
      MESHWORK_RETURN_IF_ERROR(
          driver.check(driver.fillBytes(arena.address() + place, 0,
                                        buffer->size_bytes(), main->stream()),
                       "clearing memory"));
  }
  return main->finish();
}

CudaExecutor::~CudaExecutor() {
  (void)cuda.gpu.makeCurrent();
  // Before communicators are cut off: NCCL waits for all graphs that hold one
  // (its src/init.cc, commDestroySync). One that runs goes when it has ended.
  for (auto &[key, list] : pieces)
    for (Piece &piece : list)
      if (piece.graph)
        (void)cuda.gpu.driver().graphExecDestroy(piece.graph);
  // Freeing memory waits for streams, and those for peers that do not come.
  if (!setup.transport.failure().ok() || !finish().ok())
    cuda.transport.cutOff();
  // Queues first, then what they ran, before the libraries that it holds.
  lanes.clear();
  channels.clear();
  lists.clear();
}

absl::Status CudaExecutor::finish() {
  MESHWORK_RETURN_IF_ERROR(main->finish());
  for (auto &channel : channels)
    if (channel)
      MESHWORK_RETURN_IF_ERROR(channel->queue->finish());
  return absl::OkStatus();
}

absl::Status CudaExecutor::write(uint64_t place,
                                 absl::Span<const std::byte> bytes) {
  // Weights may be saved by another thread than that of the rank.
  MESHWORK_RETURN_IF_ERROR(cuda.gpu.makeCurrent());
  if (std::byte *at = onHost(place)) {
    MESHWORK_RETURN_IF_ERROR(settle());
    std::memcpy(at, bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  return addHint(staging->write(arena.address() + place, bytes));
}

absl::Status CudaExecutor::read(uint64_t place, absl::Span<std::byte> bytes) {
  MESHWORK_RETURN_IF_ERROR(cuda.gpu.makeCurrent());
  if (onHost(place)) {
    MESHWORK_RETURN_IF_ERROR(settle());
    return readBeside(place, bytes);
  }
  return addHint(staging->read(arena.address() + place, bytes));
}

absl::Status CudaExecutor::readBeside(uint64_t place,
                                      absl::Span<std::byte> bytes) {
  MESHWORK_RETURN_IF_ERROR(cuda.gpu.makeCurrent());
  if (const std::byte *at = onHost(place)) {
    std::memcpy(bytes.data(), at, bytes.size());
    return absl::OkStatus();
  }
  std::lock_guard<std::mutex> lock(beside.mutex);
  return beside.staging->read(arena.address() + place, bytes);
}

/// A fault in a kernel shows in whatever is called next.
absl::Status CudaExecutor::addHint(absl::Status status) const {
  // The first to fail, in a wait for the GPU; else a peer's message.
  if (absl::IsDeadlineExceeded(status) && !cuda.synchronous &&
      setup.transport.failure().ok())
    return absl::DeadlineExceededError(
        absl::StrCat(status.message(),
                     "; with --synchronous one instruction is named. If "
                     "nothing hangs and it is only slow, raise --timeout"));
  if (status.code() != absl::StatusCode::kInternal || cuda.synchronous)
    return status;
  return absl::InternalError(absl::StrCat(
      "rank ", setup.program.rank, " on GPU ", cuda.gpu.ordinal(), ": ",
      status.message(), "; ", progress.describe(/*afterFault=*/true),
      "; instructions run behind the host, so the cause may be any of these: "
      "run it again with --synchronous to have it named"));
}

/// "rank 1, forward[12] \"h.0.attn\" (Attention): ...".
absl::Status CudaExecutor::locate(absl::Status status, const ListRun &list,
                                  uint32_t index) const {
  if (status.ok())
    return status;
  const plan::Instruction &source = *boundOf(list)[index].source;
  return absl::Status(
      status.code(), absl::StrCat("rank ", setup.program.rank, ", instruction ",
                                  plan::quote(source.name()), " (",
                                  plan::EnumNameOperation(source.op_type()),
                                  ", ", setup.program.nameOf(list.list, index),
                                  "): ", status.message()));
}

/// Instructions [begin, end) go into the stream next.
void CudaExecutor::beginWork(ListRun list, uint32_t begin, uint32_t end) {
  const std::vector<Bound> &all = boundOf(list);
  list.begin = begin;
  list.end = end;
  bool meets = std::any_of(all.begin() + begin, all.begin() + end,
                           [](const Bound &one) { return !one.compute; });
  progress.begin({list, meets || std::exchange(awaitsPeer, false)});
}

absl::Status CudaExecutor::runOne(const ListRun &list, uint32_t index) {
  const Bound &one = boundOf(list)[index];
  beginWork(list, index, index + 1);
  absl::Status status = perform(list, index, times);
  if (status.ok())
    status = progress.end(*main);
  if (status.ok() && cuda.synchronous) {
    status = main->finish();
    if (status.ok() && one.channel > 0)
      status = channels[one.channel - 1]->queue->finish();
  }
  return locate(std::move(status), list, index);
}

absl::Status CudaExecutor::runInstructions(const ListRun &list) {
  if (observer)
    return runObserved(list);
  absl::StatusOr<const std::vector<Piece> *> parts = piecesOf(list);
  MESHWORK_RETURN_IF_ERROR(parts.status());
  const Driver &driver = cuda.gpu.driver();
  for (const Piece &piece : **parts) {
    if (!piece.graph) {
      for (uint32_t i = piece.begin; i < piece.end; ++i)
        MESHWORK_RETURN_IF_ERROR(runOne(list, i));
      continue;
    }
    beginWork(list, piece.begin, piece.end);
    MESHWORK_RETURN_IF_ERROR(
        locate(driver.check(driver.graphLaunch(piece.graph, main->stream()),
                            "launching the graph that begins here"),
               list, piece.begin));
    MESHWORK_RETURN_IF_ERROR(progress.end(*main));
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
