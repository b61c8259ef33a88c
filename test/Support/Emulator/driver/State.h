// The emulated driver's objects. Handles that the driver gives out are their
// addresses; each is looked up before use, so a wrong one is an error.
#pragma once

#include "runtime/device/cuda/DriverApi.h"
#include "test/Support/Emulator/driver/Allocations.h"
#include "test/Support/Emulator/ptx/Module.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

namespace meshwork::emulator {
using namespace runtime::cuda;

/// Of streams; the least is 0.
inline constexpr int greatestPriority = -5;

/// Errors that the runtime does not name.
namespace code {
using namespace runtime::cuda::result;
inline constexpr Result deinitialized = 4, invalidDevice = 101,
                        misalignedAddress = 716, launchTimeout = 702,
                        captureMerge = 902, captureUnmatched = 903,
                        captureUnjoined = 904, captureIsolation = 905,
                        capturedEvent = 907, captureWrongThread = 908;
} // namespace code

/// From the environment, once.
struct Settings {
  int major = 8, minor = 0;        // MESHWORK_EMULATOR_CC=8.0
  int driver = 13000;              // MESHWORK_EMULATOR_DRIVER
  int devices = 1;                 // MESHWORK_EMULATOR_DEVICES
  size_t memoryBytes = 4ull << 30; // MESHWORK_EMULATOR_MEMORY
  unsigned jitterUs = 0;           // MESHWORK_EMULATOR_JITTER_US
  unsigned threads = 1;            // MESHWORK_EMULATOR_THREADS, of a launch
  std::string calls;               // MESHWORK_EMULATOR_CALLS, a path
  uint64_t instructions = ptx::Shape().maxInstructions; // .._INSTRUCTIONS
  size_t sharedOptIn() const { return (major == 8 ? 163 : 227) << 10; }
};

class StreamState;
struct Capture;

struct DeviceState {
  int ordinal = 0;
  int numberHere = 0; // in CUDA_VISIBLE_DEVICES where that is set
  // Of the primary context; read without the lock too.
  std::atomic<int> references = 0;
  std::atomic<Result> error = code::success;
  /// Streams that still have work, closed ones included.
  std::vector<std::shared_ptr<StreamState>> streams;
};

/// What a stream runs; captured work runs many times.
using Work = std::function<void()>;

/// How long a question waits for the answer that nothing is left to do. A
/// thread that asks again and again otherwise takes the cores that run the
/// work, as it does not where a GPU runs it.
constexpr auto soon = std::chrono::milliseconds(1);

/// An event's completions; shared with the work that waits for them.
class EventState {
public:
  EventState(DeviceState &device, bool timed) : device(device), timed(timed) {}
  /// A new recording; complete(its number) ends it.
  uint64_t begin();
  void complete(uint64_t number);
  void wait(uint64_t number);
  uint64_t last() const;
  bool done() const; // the last recording
  bool doneSoon();   // the same, for who asks again and again
  std::chrono::steady_clock::time_point time() const;

  DeviceState &device;
  const bool timed;
  /// The capture in which it was recorded last, and after which nodes.
  std::weak_ptr<Capture> capture;
  bool isCaptured = false;
  std::set<size_t> capturedAfter;

private:
  mutable std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, completed = 0;
  std::chrono::steady_clock::time_point when;
};

struct GraphState {
  struct Node {
    Work work;
    std::set<size_t> after; // smaller numbers: recorded before
  };
  std::vector<Node> nodes;
  std::set<int> priorities; // of the streams that the nodes come from
};

/// A capture that has begun and not ended.
struct Capture {
  StreamState *origin = nullptr;
  int mode = 0;
  std::thread::id thread;
  bool valid = true;
  std::shared_ptr<GraphState> graph = std::make_shared<GraphState>();
  std::set<StreamState *> streams; // the origin and those that joined
};

/// Work in order, on a thread of its own.
class StreamState {
public:
  StreamState(DeviceState &device, unsigned flags, int priority);
  static void start(const std::shared_ptr<StreamState> &stream);
  void push(Work work);
  void close(); // ends after its work
  bool idleSoon();
  void waitIdle();
  bool ended() const;

  DeviceState &device;
  const unsigned flags;
  const int priority;
  std::shared_ptr<Capture> capture; // while it takes part in one
  std::set<size_t> tail;            // nodes that its next work comes after

private:
  void run();
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  bool busy = false, closed = false, hasEnded = false;
  std::minstd_rand random;
};

struct ModuleState {
  DeviceState *device;
  std::unique_ptr<ptx::Module> module;
};
struct FunctionState {
  std::shared_ptr<ModuleState> module;
  const ptx::Program *program;
  std::atomic<uint32_t> maxDynamicShared = 0; // 0: not set
};

/// Live objects of one kind.
template <class T> class Handles {
public:
  void *add(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex);
    void *handle = const_cast<std::remove_const_t<T> *>(object.get());
    live[handle] = std::move(object);
    return handle;
  }
  std::shared_ptr<T> find(const void *handle) const {
    std::lock_guard lock(mutex);
    auto it = live.find(handle);
    return it == live.end() ? nullptr : it->second;
  }
  std::shared_ptr<T> remove(const void *handle) {
    std::lock_guard lock(mutex);
    auto it = live.find(handle);
    if (it == live.end())
      return nullptr;
    std::shared_ptr<T> object = std::move(it->second);
    live.erase(it);
    return object;
  }
  template <class F> void removeIf(F f) {
    std::lock_guard lock(mutex);
    std::erase_if(live, [&](const auto &each) { return f(*each.second); });
  }

private:
  mutable std::mutex mutex;
  std::unordered_map<const void *, std::shared_ptr<T>> live;
};

struct State {
  Settings settings;
  std::deque<DeviceState> devices;
  Allocations memory;
  Handles<StreamState> streams;
  Handles<EventState> events;
  Handles<ModuleState> modules;
  Handles<FunctionState> functions;
  Handles<GraphState> graphs;
  Handles<const GraphState> graphExecs;
  /// Pinned host memory, by its begin.
  std::mutex pinnedMutex;
  std::map<uint64_t, std::pair<uint64_t, std::unique_ptr<std::byte[]>>> pinned;
  std::atomic<bool> initialized = false;
  /// Guards references, lists of streams, captures.
  std::recursive_mutex mutex;
};
State &state(); // lives until the process ends, as its threads do

/// A line on stderr.
void say(const std::string &text);
/// A line of the file that Settings::calls names: a call that puts work into a
/// stream or asks for it, and the handle that it names.
void note(const char *call, const void *handle);
void note(const char *call, uint64_t number);
/// Called by work: makes `error` the sticky error of the device it runs on.
void failRunning(Result error, const std::string &text);
DeviceState *runningDevice();

// Checks at the begin of a call.
/// The device of this thread's context. notInitialized, invalidContext, or the
/// device's sticky error.
Result current(DeviceState *&device);
void setCurrent(DeviceState *device);
/// current(), and fails, ending captures of this thread, when the call must not
/// happen while this thread captures.
Result currentForUnsafeCall(DeviceState *&device);

/// Puts work into a stream or, while that is captured, into its graph.
Result enqueue(StreamState &stream, Work work);
/// Waits for all work of a device.
void synchronize(DeviceState &device);
/// A stream is waited for or asked: an error that ends a capture of it.
Result checkNotCapturing(StreamState &stream);

} // namespace meshwork::emulator

// What the library exports. A definition with other parameters does not
// compile; one that is missing does not link (Signatures.cpp).
extern "C" {
#define MESHWORK_DECLARE(member, symbol, ...)                                  \
  meshwork::runtime::cuda::Result symbol(__VA_ARGS__);
using namespace meshwork::runtime::cuda;
MESHWORK_CUDA_DRIVER_FUNCTIONS(MESHWORK_DECLARE)
MESHWORK_CUDA_DRIVER_OPTIONAL_FUNCTIONS(MESHWORK_DECLARE)
#undef MESHWORK_DECLARE
}
