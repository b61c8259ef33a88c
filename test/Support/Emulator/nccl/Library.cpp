// The functions that the library exports.
#include "test/Support/Emulator/Emulator.h"
#include "test/Support/Emulator/nccl/Batch.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <unistd.h>

namespace meshwork::runtime::cuda::nccl {

struct Registered {
  const std::byte *begin;
  size_t bytes;
};
/// What all communicators of the process know, since freed memory must not be.
std::mutex registeredMutex;
std::multiset<const std::byte *> registeredHere;

struct CommObject {
  std::shared_ptr<Shared> shared;
  bool blocking = true;
  int polls = 0; // questions still answered with inProgress
  DevicePtr buffers = 0;
  /// Memory that ncclCommRegister told of, by its handle.
  std::vector<std::unique_ptr<Registered>> registered;

  bool knows(const std::byte *place, size_t bytes) const {
    return std::any_of(registered.begin(), registered.end(),
                       [&](const auto &one) {
                         return one->begin <= place &&
                                place + bytes <= one->begin + one->bytes;
                       });
  }
  Result state() {
    if (const char *error = std::getenv("MESHWORK_EMULATOR_NCCL_ERROR"))
      return std::atoi(error);
    if (!shared->segment->isComplete())
      return result::inProgress;
    return polls > 0 ? result::inProgress : result::success;
  }
  /// What a call that began something returns.
  Result began() {
    polls = blocking ? 0 : 3;
    return blocking ? result::success : result::inProgress;
  }
};

extern "C" {
cuda::Result cuMemAlloc_v2(DevicePtr *to, size_t bytes);
cuda::Result cuMemFree_v2(DevicePtr memory);
}

namespace {
/// Memory of the device, as the library takes for its channels.
bool takeBuffers(CommObject &comm) {
  const char *bytes = std::getenv("MESHWORK_EMULATOR_NCCL_BYTES");
  return !bytes ||
         cuMemAlloc_v2(&comm.buffers, std::strtoull(bytes, nullptr, 10)) ==
             cuda::result::success;
}
void end(Comm comm) {
  if (comm->buffers)
    (void)cuMemFree_v2(comm->buffers);
  std::lock_guard<std::mutex> lock(registeredMutex);
  for (const auto &one : comm->registered)
    registeredHere.erase(registeredHere.find(one->begin));
  delete comm;
}

struct Pending {
  Comm comm;
  Stream stream;
  std::vector<Call> calls;
};
/// Calls of this thread between groupStart and groupEnd.
struct Grouped {
  int depth = 0;
  Result failed = result::success;
  std::vector<Pending> pending;
};
thread_local Grouped grouped;
thread_local const char *lastError = "";

Result refuse(Result code, const char *why) {
  lastError = why;
  if (grouped.depth > 0)
    grouped.failed = code;
  return code;
}

Result put(const Pending &pending) {
  auto *batch = new Batch{pending.comm->shared, pending.calls};
  ++batch->comm->running;
  int queued = meshworkEmulatorEnqueue(
      pending.stream, [](void *state) { static_cast<Batch *>(state)->run(); },
      batch,
      [](void *state) {
        auto *ended = static_cast<Batch *>(state);
        --ended->comm->running;
        delete ended;
      });
  if (queued != cuda::result::success)
    return refuse(result::unhandledCudaError, "the stream takes no work");
  return pending.comm->began();
}

/// NCCL calls it undefined to give a communicator memory that it knows on some
/// ranks and not on others; so all must be known, once some is.
bool isKnown(const CommObject &comm, const Call &call) {
  size_t width = call.type == dataType::bf16 ? 2 : 4,
         ranks = comm.shared->ranks;
  bool scatters = call.kind == Call::Kind::reduceScatter;
  bool gathers = call.kind == Call::Kind::allGather;
  size_t bytes = call.count * width;
  return comm.registered.empty() || bytes == 0 ||
         ((!call.from ||
           comm.knows(call.from, bytes * (scatters ? ranks : 1))) &&
          (!call.to || comm.knows(call.to, bytes * (gathers ? ranks : 1))));
}

Result add(Comm comm, Stream stream, const Call &call) {
  if (!comm)
    return refuse(result::invalidArgument, "the communicator is null");
  if (comm->state() == result::inProgress)
    return refuse(result::invalidUsage,
                  "the communicator is used while another call goes on");
  bool known = call.type == dataType::i32 || call.type == dataType::f32 ||
               call.type == dataType::bf16;
  if (!known)
    return refuse(result::invalidArgument, "the type is not supported");
  if (call.peer >= comm->shared->ranks)
    return refuse(result::invalidArgument, "there is no such peer");
  if ((call.kind == Call::Kind::send || call.kind == Call::Kind::receive) &&
      call.peer == comm->shared->rank)
    return refuse(result::invalidArgument, "a rank has itself as a peer");
  if (!isKnown(*comm, call))
    return refuse(result::invalidUsage,
                  "the communicator knows other memory, and not this");
  if (grouped.depth == 0)
    return put({comm, stream, {call}});
  for (Pending &pending : grouped.pending) {
    if (pending.comm != comm)
      continue;
    if (pending.stream != stream)
      return refuse(result::invalidUsage,
                    "a group uses a communicator on two streams");
    pending.calls.push_back(call);
    return result::success;
  }
  grouped.pending.push_back({comm, stream, {call}});
  return result::success;
}

/// NCCL waits for what streams have of a communicator, and for the graphs that
/// hold it, for ever; here a test ends that would.
void waitUntilUnused(const CommObject &comm, const char *how) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (comm.shared->running > 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      std::fprintf(stderr,
                   "NCCL stand-in: a communicator is %s while a graph holds "
                   "it, or its stream waits for another one: NCCL would hang\n",
                   how);
      std::abort();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

const std::byte *at(const void *place) {
  return static_cast<const std::byte *>(place);
}
std::byte *at(void *place) { return static_cast<std::byte *>(place); }
} // namespace

extern "C" {
Result ncclGetVersion(int *version) {
  const char *told = std::getenv("MESHWORK_EMULATOR_NCCL_VERSION");
  *version = told ? std::atoi(told) : 22809;
  return result::success;
}
const char *ncclGetErrorString(Result code) {
  const char *texts[] = {"no error",
                         "unhandled cuda error",
                         "unhandled system error",
                         "internal error",
                         "invalid argument",
                         "invalid usage",
                         "remote process exited or there was a network error",
                         "NCCL operation in progress"};
  return code >= 0 && code <= result::inProgress ? texts[code]
                                                 : "unknown result code";
}
const char *ncclGetLastError(Comm) { return lastError; }

Result ncclGetUniqueId(UniqueId *id) {
  static std::atomic<unsigned> count{0};
  std::random_device random;
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->bytes, sizeof(id->bytes), "/meshwork-nccl-%d-%u-%08x",
                static_cast<int>(::getpid()), count++, random());
  return result::success;
}

Result ncclCommInitRankConfig(Comm *comm, int ranks, UniqueId id, int rank,
                              Config *config) {
  // NCCL would not mind, and hang now and then.
  thread_local int madeHere = 0;
  const char *order = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  if (++madeHere > 1 && (!order || std::atoi(order) != 1))
    return refuse(result::invalidUsage,
                  "a rank has several communicators, and nothing orders them: "
                  "NCCL_LAUNCH_ORDER_IMPLICIT is not 1");
  if (!comm || ranks < 1 || rank < 0 || rank >= ranks)
    return refuse(result::invalidArgument, "rank or number of ranks");
  if (!config || config->magic != Config().magic || config->size < 20)
    return refuse(result::invalidArgument, "the config is not initialized");
  int version = 0;
  (void)ncclGetVersion(&version);
  bool hasCtas = version >= firstWithCtas && config->size >= sizeof(Config);
  if (hasCtas && config->maxCtas != undefined) {
    if (config->maxCtas < 1)
      return refuse(result::invalidArgument, "maxCTAs is less than 1");
    meshworkEmulatorNote("ncclCommInitRankConfig maxCTAs",
                         static_cast<unsigned long long>(config->maxCtas));
  }
  auto made = std::make_unique<CommObject>();
  made->blocking = config->blocking != 0;
  made->shared = std::make_shared<Shared>();
  made->shared->rank = static_cast<uint32_t>(rank);
  made->shared->ranks = static_cast<uint32_t>(ranks);
  made->shared->segment = Segment::open(id.bytes, made->shared->ranks);
  if (!made->shared->segment)
    return refuse(result::systemError, "no shared memory, or other ranks");
  if (!takeBuffers(*made))
    return refuse(result::unhandledCudaError, "no memory of the device");
  *comm = made.release();
  while ((*comm)->blocking && !(*comm)->shared->segment->isComplete())
    std::this_thread::yield();
  return (*comm)->began();
}

Result ncclMemAlloc(void **memory, size_t bytes) {
  DevicePtr made = 0;
  if (cuMemAlloc_v2(&made, bytes) != cuda::result::success)
    return refuse(result::unhandledCudaError, "no memory of the device");
  *memory = reinterpret_cast<void *>(made);
  return result::success;
}
Result ncclMemFree(void *memory) {
  std::lock_guard<std::mutex> lock(registeredMutex);
  if (registeredHere.contains(at(memory))) {
    std::fprintf(stderr, "NCCL stand-in: memory is freed that a communicator "
                         "knows\n");
    std::abort();
  }
  (void)cuMemFree_v2(reinterpret_cast<DevicePtr>(memory));
  return result::success;
}
Result ncclCommRegister(const Comm comm, void *memory, size_t bytes,
                        void **handle) {
  if (!comm || !handle ||
      !meshworkEmulatorCheck(reinterpret_cast<DevicePtr>(memory), bytes))
    return refuse(result::invalidArgument, "no memory, or null");
  std::lock_guard<std::mutex> lock(registeredMutex);
  comm->registered.push_back(
      std::make_unique<Registered>(Registered{at(memory), bytes}));
  registeredHere.insert(at(memory));
  *handle = comm->registered.back().get();
  meshworkEmulatorNote("ncclCommRegister", bytes);
  return result::success;
}
Result ncclCommDeregister(const Comm comm, void *handle) {
  std::lock_guard<std::mutex> lock(registeredMutex);
  auto found =
      std::find_if(comm->registered.begin(), comm->registered.end(),
                   [&](const auto &one) { return one.get() == handle; });
  if (found == comm->registered.end())
    return refuse(result::invalidArgument, "there is no such handle");
  registeredHere.erase(registeredHere.find((*found)->begin));
  comm->registered.erase(found);
  return result::success;
}

Result ncclCommGetAsyncError(Comm comm, Result *state) {
  if (!comm || !state)
    return refuse(result::invalidArgument, "null");
  *state = comm->state();
  if (comm->polls > 0)
    --comm->polls;
  return result::success;
}

Result ncclCommFinalize(Comm comm) {
  waitUntilUnused(*comm, "finalized");
  return comm->began();
}
Result ncclCommDestroy(Comm comm) {
  waitUntilUnused(*comm, "destroyed");
  end(comm);
  return result::success;
}
Result ncclCommAbort(Comm comm) {
  comm->shared->aborted = true;
  waitUntilUnused(*comm, "aborted");
  end(comm);
  return result::success;
}

Result ncclAllReduce(const void *from, void *to, size_t count, int type,
                     int reduction, Comm comm, Stream stream) {
  return add(comm, stream,
             {Call::Kind::allReduce, at(from), at(to), count, type, reduction});
}
Result ncclReduceScatter(const void *from, void *to, size_t count, int type,
                         int reduction, Comm comm, Stream stream) {
  return add(
      comm, stream,
      {Call::Kind::reduceScatter, at(from), at(to), count, type, reduction});
}
Result ncclAllGather(const void *from, void *to, size_t count, int type,
                     Comm comm, Stream stream) {
  return add(comm, stream,
             {Call::Kind::allGather, at(from), at(to), count, type});
}
Result ncclSend(const void *from, size_t count, int type, int peer, Comm comm,
                Stream stream) {
  return add(comm, stream,
             {Call::Kind::send, at(from), nullptr, count, type, 0,
              static_cast<uint32_t>(peer)});
}
Result ncclRecv(void *to, size_t count, int type, int peer, Comm comm,
                Stream stream) {
  return add(comm, stream,
             {Call::Kind::receive, nullptr, at(to), count, type, 0,
              static_cast<uint32_t>(peer)});
}

Result ncclGroupStart() {
  ++grouped.depth;
  return result::success;
}
Result ncclGroupEnd() {
  if (grouped.depth == 0)
    return refuse(result::invalidUsage, "no group was started");
  if (--grouped.depth > 0)
    return result::success;
  Grouped group = std::move(grouped);
  grouped = {};
  Result code = group.failed;
  for (const Pending &pending : group.pending)
    if (code == result::success || code == result::inProgress)
      code = put(pending);
  return code;
}
}

} // namespace meshwork::runtime::cuda::nccl
