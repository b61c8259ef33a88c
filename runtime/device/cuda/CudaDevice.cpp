#include "runtime/device/cuda/CudaDevice.h"
#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/Programs.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/base/StartThread.h"
#include "runtime/device/cuda/NcclTransport.h"
#include "runtime/device/cuda/PeerTransport.h"
#include "runtime/machine/Memory.h"
#include <cstdlib>
#include <set>

namespace meshwork::runtime::cuda {
using plan::checkedAdd;

static absl::Status tooFewGpus(uint64_t needed, size_t devices) {
  return absl::FailedPreconditionError(absl::StrCat(
      needed, " ranks on this machine need as many GPUs, there ",
      devices == 1 ? "is " : "are ", devices,
      ": use more machines, compile for fewer ranks, or for a check of the "
      "plan run all ranks on one GPU, slowly, with --share-gpu"));
}

absl::StatusOr<std::vector<int>> chooseGpus(const DeviceOptions &options,
                                            absl::Span<const GpuNames> seen) {
  if (options.shareGpu)
    return std::vector<int>(options.ranks, 0);
  const GpuNames &mine = seen[options.process];
  std::vector<int> chosen;
  std::set<std::string> taken;
  for (const GpuNames &its : seen.first(options.process + 1)) {
    chosen.clear();
    for (size_t i = 0; i < its.size() && chosen.size() < options.ranks; ++i)
      if (taken.insert(its[i]).second)
        chosen.push_back(static_cast<int>(i));
  }
  if (chosen.size() == options.ranks)
    return chosen;
  auto seesMine = [&](const GpuNames &its) {
    return absl::c_find_first_of(its, mine) != its.end();
  };
  return tooFewGpus(options.ranks * absl::c_count_if(seen, seesMine),
                    mine.size());
}

/// The most channels and axes that a program has collectives on: a rank's
/// communicators.
static size_t communicatorsOf(const plan::Plan &plan) {
  size_t most = 0;
  for (const plan::Program *program : *plan.programs()) {
    std::set<std::pair<uint32_t, std::vector<uint32_t>>> groups;
    size_t lanes = 0;
    for (uint32_t list = 0; list < plan::orEmpty(program->lists()).size();
         ++list)
      for (const plan::Instruction *instruction :
           plan::listOf(*program, list)) {
        if (const plan::Collective *op = instruction->op_as_Collective())
          groups.insert({instruction->channel(),
                         {op->axes()->begin(), op->axes()->end()}});
        lanes += instruction->op_as_Send() || instruction->op_as_Receive();
      }
    most = std::max(most, groups.size() + lanes);
  }
  return most;
}

void keepLaunchOrder() {
  ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
}

CudaDevice::CudaDevice(const Driver &driver, const plan::Plan &plan,
                       const DeviceOptions &options)
    : driver(driver), plan(plan), options(options),
      dnnNotes({"cuDNN", "instructions of attention", "the plan's kernels"}),
      wgmmaNotes({"wgmma", "instructions of attention", "the plan's kernels"}) {
}

absl::StatusOr<std::unique_ptr<runtime::Device>>
CudaDevice::open(const plan::Plan &plan, const DeviceOptions &options) {
  absl::StatusOr<const Driver *> driver = Driver::open();
  MESHWORK_RETURN_IF_ERROR(driver.status());
  if (communicatorsOf(plan) > 1)
    keepLaunchOrder();
  std::unique_ptr<CudaDevice> device(new CudaDevice(**driver, plan, options));
  MESHWORK_RETURN_IF_ERROR(device->openGpus());
  return device;
}

/// The names of the GPUs that each process of the run sees.
static absl::StatusOr<std::vector<GpuNames>>
seenGpus(const Driver &driver, const DeviceOptions &options) {
  GpuNames mine;
  for (int i = 0; i < driver.devices; ++i) {
    Device device = 0;
    Uuid uuid{};
    MESHWORK_RETURN_IF_ERROR(
        driver.check(driver.deviceGet(&device, i), "cuDeviceGet"));
    MESHWORK_RETURN_IF_ERROR(driver.check(driver.deviceGetUuid(&uuid, device),
                                          "cuDeviceGetUuid_v2"));
    mine.push_back(absl::BytesToHexString(absl::string_view(
        reinterpret_cast<const char *>(uuid.data()), uuid.size())));
  }
  std::vector<std::string> told;
  MESHWORK_ASSIGN_OR_RETURN(told, options.exchange(absl::StrJoin(mine, " ")));
  std::vector<GpuNames> seen;
  for (const std::string &text : told)
    seen.push_back(absl::StrSplit(text, ' ', absl::SkipEmpty()));
  return seen;
}

absl::StatusOr<std::vector<int>> gpusOfRanks(const Driver &driver,
                                             const DeviceOptions &options) {
  std::vector<GpuNames> seen;
  MESHWORK_ASSIGN_OR_RETURN(seen, seenGpus(driver, options));
  return chooseGpus(options, seen);
}

absl::Status CudaDevice::openGpus() {
  std::vector<int> chosen;
  MESHWORK_ASSIGN_OR_RETURN(chosen, gpusOfRanks(driver, options));
  for (int ordinal : chosen) {
    if (!gpus.empty() && gpus.back()->ordinal() == ordinal)
      break; // One for all.
    gpus.emplace_back();
    MESHWORK_ASSIGN_OR_RETURN(gpus.back(), Gpu::open(driver, ordinal, plan));
  }
  return options.noWgmmaAttention ? absl::OkStatus() : loadWgmma();
}

absl::Status CudaDevice::loadWgmma() {
  for (const std::unique_ptr<Gpu> &gpu : gpus) {
    MESHWORK_RETURN_IF_ERROR(gpu->makeCurrent());
    absl::StatusOr<std::unique_ptr<WgmmaKernels>> loaded =
        WgmmaKernels::load(driver, gpu->device());
    if (!loaded.ok() && options.wgmmaAttention)
      return absl::FailedPreconditionError(
          absl::StrCat("--wgmma-attention on GPU ", gpu->ordinal(), ": ",
                       loaded.status().message()));
    if (loaded.ok())
      dnnNotes.leaveTo("others");
    else
      tellNoWgmma(*gpu, loaded.status());
    wgmma.push_back(loaded.ok() ? *std::move(loaded) : nullptr);
  }
  return absl::OkStatus();
}

/// Nobody asked for them: on a GPU that they are not made for there is nothing
/// to tell.
void CudaDevice::tellNoWgmma(const Gpu &gpu, const absl::Status &why) {
  if (!absl::IsUnimplemented(why))
    absl::StrAppend(&withoutWgmma, "the plan's kernels run attention on GPU ",
                    gpu.ordinal(), ": ", why.message(), "\n");
}

std::string CudaDevice::placeOf(uint32_t rank) const {
  const Gpu &gpu = *gpus[numberOf(rank)];
  return absl::StrCat("GPU ", gpu.ordinal(), " (", gpu.describe(), ")");
}

/// The arenas in the host's memory, of this process and of its like here.
absl::Status
CudaDevice::checkHostMemory(const std::vector<CoreShare> &cores) const {
  uint64_t need = 0;
  for (uint32_t rank = 0; rank < cores.size(); ++rank)
    if (cores[rank].threads > 0 &&
        !checkedAdd(
            need,
            plan.programs()->Get(plan::programOf(plan, rank))->host_bytes(),
            need))
      return plan::bad("the host's memory of all ranks does not fit 64 bits");
  if (!plan::checkedMul(need, options.processesHere, need))
    return plan::bad("the host's memory of all ranks does not fit 64 bits");
  uint64_t available = availableBytes();
  return need <= available
             ? absl::OkStatus()
             : absl::ResourceExhaustedError(absl::StrCat(
                   "the plan keeps ", bytesText(need),
                   " in the host's memory, this process may take ",
                   bytesText(available), ": run fewer ranks on this machine"));
}

absl::StatusOr<uint64_t>
CudaDevice::checkMemory(const std::vector<CoreShare> &cores, uint32_t) {
  MESHWORK_RETURN_IF_ERROR(checkHostMemory(cores));
  std::map<Gpu *, uint64_t> needs;
  uint64_t total = 0;
  for (uint32_t rank = 0; rank < cores.size(); ++rank) {
    if (cores[rank].threads == 0)
      continue;
    const plan::Program &program =
        *plan.programs()->Get(plan::programOf(plan, rank));
    // Processes that share a GPU take as much of it each.
    uint64_t sharers = options.shareGpu ? options.processesHere : 1;
    uint64_t need = 0, ofSharers = 0, &ofGpu = needs[&gpuOf(rank)];
    if (!checkedAdd(program.arena_bytes(), program.workspace_bytes_per_thread(),
                    need) ||
        !checkedAdd(total, need, total) ||
        !plan::checkedMul(need, sharers, ofSharers) ||
        !checkedAdd(ofGpu, ofSharers, ofGpu))
      return plan::bad("the memory of all ranks does not fit 64 bits");
  }
  for (auto [gpu, need] : needs) {
    uint64_t free = 0;
    MESHWORK_ASSIGN_OR_RETURN(free, gpu->freeBytes());
    if (need > free)
      return absl::ResourceExhaustedError(absl::StrCat(
          "the plan needs ", bytesText(need), " on GPU ", gpu->ordinal(), ", ",
          gpu->describe(), ", which has ", bytesText(free),
          " free: compile with a smaller micro batch, or use a larger one"));
  }
  return total;
}

/// Communicators end together, those of each rank in a thread of its own.
CudaDevice::~CudaDevice() {
  std::vector<std::function<void()>> ends;
  for (auto &[rank, transport] : connected)
    ends.push_back([this, rank = rank, &transport = transport] {
      (void)gpuOf(rank).makeCurrent();
      transport.reset();
    });
  runAtOnce(std::move(ends));
  for (size_t i = 0; i < wgmma.size(); ++i) {
    (void)gpus[i]->makeCurrent();
    wgmma[i].reset();
  }
}

/// The shared one is made by the first rank that comes; all give the same host
/// transport.
absl::StatusOr<DeviceTransport *>
CudaDevice::transportOf(const ExecutorSetup &setup) {
  InProcessTransport *host = setup.transport.inProcess();
  if (!host || gpus.size() > 1)
    return connect(setup);
  if (options.ncclMaxCtas > 0 || options.ncclRegister)
    return absl::InvalidArgumentError(absl::StrCat(
        options.ncclRegister ? "--nccl-register" : "--nccl-max-ctas",
        " is for ranks with a GPU each: this run has one GPU and one process, "
        "and does without NCCL; leave the option out"));
  std::lock_guard<std::mutex> lock(mutex);
  if (!shared)
    shared = std::make_unique<PeerTransport>(driver, *host);
  return shared.get();
}

/// Several processes on one GPU: NCCL refuses that, or hangs, unless it is new
/// enough and told so (NVIDIA's release notes of 2.30).
static absl::Status allowSharing() {
  constexpr int firstThatShares = 23000;
  // Read when the library first looks at the GPUs of a group.
  ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", /*overwrite=*/1);
  const NcclLibrary *library = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(library, NcclLibrary::open());
  int version = 0;
  MESHWORK_RETURN_IF_ERROR(
      library->check(library->getVersion(&version), "asking NCCL its version"));
  if (version >= firstThatShares)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--share-gpu with one process a rank needs NCCL ", firstThatShares,
      " (2.30) or newer, libnccl.so.2 is version ", version,
      ": run all ranks in one process, with --transport threads"));
}

/// NCCL takes its buffers when communicators are made, as many as the links of
/// the machine make worth while: what is left is known only then.
static absl::Status checkBesideNccl(const Gpu &gpu,
                                    const plan::Program &program,
                                    uint64_t freeBefore) {
  uint64_t free = 0;
  MESHWORK_ASSIGN_OR_RETURN(free, gpu.freeBytes());
  uint64_t need = program.arena_bytes() + program.workspace_bytes_per_thread();
  if (need <= free)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the plan needs ", bytesText(need), " on GPU ", gpu.ordinal(), ", ",
      gpu.describe(), ", which has ", bytesText(free),
      " free beside NCCL's communicators, which took ",
      bytesText(freeBefore - std::min(free, freeBefore)),
      ": compile with a smaller micro batch, or let NCCL take less, with "
      "NCCL_MAX_NCHANNELS or NCCL_BUFFSIZE"));
}

/// Each direction between two stages is a communicator of its own. Their
/// kernels must begin in the host's order and run side by side; else two stages
/// may wait for each other for ever. CUDA 12.3 is the first that can (NVIDIA's
/// guide to NCCL, NCCL_LAUNCH_ORDER_IMPLICIT).
static absl::Status checkDriver(const Driver &driver,
                                const std::vector<PairRequest> &pairs) {
  constexpr int first = 12030;
  if (pairs.empty() || driver.version >= first)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the driver serves CUDA ", driver.version / 1000, ".",
      driver.version % 1000 / 10,
      ", expected 12.3 or newer for a pipeline with a GPU for each stage. With "
      "an older one, stages may wait for each other for ever: install a newer "
      "driver, or compile without a pipeline"));
}

/// All ranks meet in it.
absl::StatusOr<DeviceTransport *>
CudaDevice::connect(const ExecutorSetup &setup) {
  uint32_t rank = setup.program.rank;
  std::vector<PairRequest> pairs = pairsOf(setup.program, setup.mesh);
  MESHWORK_RETURN_IF_ERROR(checkDriver(driver, pairs));
  uint64_t freeBefore = 0;
  MESHWORK_ASSIGN_OR_RETURN(freeBefore, gpuOf(rank).freeBytes());
  if (options.shareGpu && options.processesHere > 1)
    MESHWORK_RETURN_IF_ERROR(allowSharing());
  std::unique_ptr<NcclTransport> made;
  MESHWORK_ASSIGN_OR_RETURN(
      made, NcclTransport::create({driver, setup.transport, setup.mesh, rank,
                                   requestsOf(setup.program),
                                   options.timeoutSeconds, std::move(pairs),
                                   options.ncclMaxCtas, options.ncclRegister}));
  MESHWORK_RETURN_IF_ERROR(
      checkBesideNccl(gpuOf(rank), setup.program.program, freeBefore));
  std::lock_guard<std::mutex> lock(mutex);
  if (rank == 0 && options.ncclMaxCtas > 0 &&
      made->multiprocessorsOfChannel() == 0)
    overlap =
        "overlap: no collective of rank 0 runs beside the computation, so "
        "--nccl-max-ctas changes nothing";
  return (connected[rank] = std::move(made)).get();
}

std::string CudaDevice::summary() const {
  return absl::StrCat(tuning, tuning.empty() ? "" : "\n", overlap,
                      overlap.empty() ? "" : "\n", dnnNotes.text(),
                      wgmmaNotes.text(), withoutWgmma, epilogues.text());
}

absl::StatusOr<std::unique_ptr<Executor>>
CudaDevice::makeExecutor(const ExecutorSetup &setup) {
  uint32_t rank = setup.program.rank;
  MESHWORK_RETURN_IF_ERROR(gpuOf(rank).makeCurrent());
  DeviceTransport *moves = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(moves, transportOf(setup));
  return CudaExecutor::create(
      setup, {gpuOf(rank), *moves, options.synchronous, options.tunesMatmuls,
              options.timeoutSeconds, options.cudnnAttention,
              wgmma.empty() ? nullptr : wgmma[numberOf(rank)].get(), epilogues,
              dnnNotes, wgmmaNotes, tuning, overlap});
}

} // namespace meshwork::runtime::cuda
