// What runs the instructions of one rank and owns the memory they work on: the
// threads of a CPU (device/cpu) or the streams of a GPU (device/cuda).
#pragma once

#include "lib/Plan/Evaluation.h"
#include "lib/Plan/ProgramLives.h"
#include "meshwork/Plan/Ranges.h"
#include "runtime/base/ThreadTeam.h"
#include "runtime/comm/Mesh.h"
#include "runtime/comm/Transport.h"
#include "runtime/machine/Cpus.h"
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace meshwork::runtime {

/// What decides where views are: the list, which variant of its copies runs
/// (plan::Copies), and the turns of the repeats around an instruction.
struct Where {
  uint32_t list = 0, variant = 0;
  plan::Turns turns = {};
  bool operator==(const Where &) const = default;
};

/// A program as one rank finds it.
struct RankProgram {
  const plan::Plan &plan;
  const plan::Program &program;
  uint32_t rank;
  std::vector<plan::ViewInfo> views;
  std::vector<uint64_t> shifts; // bytes that each view's shifts come to
  std::vector<uint64_t> places; // of views; see lib/Plan/Spaces.h
  plan::ActionTable table;
  std::vector<std::vector<uint32_t>> setting; // see settingActions
  plan::Copies copies;                        // of buffers, by action
  plan::Transfers transfers;                  // that actions wait for
  // By list: all that may run, in order. A place in here is what ListRun and
  // observers mean; without repeats it is the instruction's number. Who goes
  // through them takes a Way, past the turns that a count leaves out.
  std::vector<std::vector<plan::Turn>> turns;
  plan::Evaluation evaluation = {}; // what it runs, where there may be one

  static absl::StatusOr<RankProgram> create(const plan::Plan &plan,
                                            uint32_t rank, const Mesh &mesh);
  const plan::Instruction &instruction(uint32_t list, uint32_t at) const {
    return *plan::listOf(program, list).Get(turns[list][at].instruction);
  }
  /// Moves `shifts` and `places` to where views are there.
  void moveTo(const Where &to);
  /// What moveTo would make of the view's place.
  uint64_t placeIn(const Where &where, uint32_t view) const;
  /// A view whose first element is at `first`.
  Strided strided(uint32_t view, std::byte *first) const;
  /// How this rank shares the dim of an input that is a part of one; of
  /// positions of another rank, how that one does.
  std::vector<layout::Cut> cutsOf(const plan::Input &input,
                                  const Mesh &mesh) const;
  /// What an input of a part (plan::isOfPart) holds from the start on.
  std::vector<int32_t> numbersOf(const plan::Input &input,
                                 const Mesh &mesh) const;
  /// Of this rank's part of a microbatch, by its number in the step.
  uint32_t firstSample(uint32_t microbatch, const Mesh &mesh) const;
  /// What the transport is asked to prepare.
  CollectiveRequest request(const plan::Instruction &collective,
                            std::byte *arena) const;
  /// Of the instruction of a list that sends or receives.
  PairRequest pairRequest(uint32_t list, const Mesh &mesh,
                          std::byte *arena) const;
  /// "backward[3]", "backward[3] in turn 7": where an instruction stands.
  std::string nameOf(uint32_t list, uint32_t at) const;
  /// Whether what stands at a place of the run's list is left out of it.
  bool leavesOut(const struct ListRun &run, uint32_t at) const;

  // The views that moveTo moves, how far it has moved them, and where it went.
  struct Moving {
    uint32_t view, group; // of plan::Lives
    uint64_t stride;      // from copy to copy; 0: there is one
    uint64_t bytes = 0;
  };
  std::vector<Moving> moving = {};
  Where now = {};
};

/// Of what no device starts on a channel.
absl::Status cannotStart(const plan::Instruction &instruction);

/// Places [begin, end) of RankProgram.turns, in one action of a step.
struct ListRun {
  uint32_t list = 0;
  uint32_t action = plan::ActionTable::none; // none of `once`
  uint32_t microbatch = 0, begin = 0, end = UINT32_MAX;
  uint64_t step = 0; // for messages
  /// Only what RankProgram.evaluation has of it.
  bool evaluates = false;
};

/// Told about instructions as they end; see Recorder.h and Replay.h.
class InstructionObserver {
public:
  virtual ~InstructionObserver() = default;
  /// What stands at place `at` of the run's list ran from `beginNs` to `endNs`
  /// (steady clock). `times` is what a collective spent; zero for others.
  /// Called on the rank's own thread; for a collective of a channel once a Wait
  /// has seen it end.
  virtual void after(const ListRun &run, uint32_t at, int64_t beginNs,
                     int64_t endNs, const CommTimes &times) = 0;
  /// Whether `after` looks at what the instruction wrote: it then runs to its
  /// end, and is told of, before the next one starts.
  virtual bool looksAtData() const { return false; }
};

/// One f32 of the arena on its way to the host, in order with what runs: what
/// is run after does not wait for it, nor does the caller. It also tells when
/// what was run before had ended.
class Readout {
public:
  virtual ~Readout() = default;
  /// Begins; without a place only the time is taken. The last one has been
  /// waited for.
  virtual absl::Status start(std::optional<uint64_t> place) = 0;
  /// Until it is here; zeros without a place. As many numbers as it was made
  /// for, until the next start.
  virtual absl::StatusOr<absl::Span<const float>> waitForAll() = 0;
  /// The first of them.
  absl::StatusOr<float> wait();
  /// Between the moments of `earlier` and of this one, of one executor; both
  /// have been waited for.
  virtual absl::StatusOr<int64_t> nsSince(const Readout &earlier) const = 0;
};

/// All calls come from the thread that made it.
class Executor {
public:
  virtual ~Executor() = default;

  /// May return before instructions have ended; what they do is in order with
  /// write and read. A failure may show in a later call.
  virtual absl::Status run(const ListRun &list,
                           InstructionObserver *observer) = 0;

  // Bytes at a place (RankProgram.places).
  virtual absl::Status write(uint64_t place,
                             absl::Span<const std::byte> bytes) = 0;
  virtual absl::Status read(uint64_t place, absl::Span<std::byte> bytes) = 0;
  /// Until all that was run has ended.
  virtual absl::Status settle() { return absl::OkStatus(); }
  /// Beside what runs since `settle`, which does not write these bytes; from
  /// any thread.
  virtual absl::Status readBeside(uint64_t place, absl::Span<std::byte> bytes) {
    return read(place, bytes);
  }
  /// Whether instructions may still run when `run` has returned, so that the
  /// device has work as long as the host keeps ahead of it.
  virtual bool runsBehind() const { return false; }
  /// Lives as long as this; made before the first step.
  absl::StatusOr<Readout *> addReadout(uint64_t numbers = 1);
  /// The arenas, one behind the other, where the host can use both in place;
  /// null elsewhere.
  virtual std::byte *hostArena() = 0;

  /// Threads of this rank on the host.
  virtual ThreadTeam &team() = 0;
  /// A large product's speed, in the type of the plan.
  virtual absl::StatusOr<double> measureMatmulTflops(plan::DType type) = 0;
  /// Communication that instructions waited for, since the last call.
  virtual CommTimes takeTimes() = 0;
  /// The most turns that a counted repeat has run since the last call; none:
  /// there was no such repeat.
  std::optional<uint32_t> takeMostTurns() {
    return std::exchange(mostTurns, std::nullopt);
  }
  void noteTurns(uint32_t turns) {
    mostTurns = std::max(turns, mostTurns.value_or(0));
  }

private:
  std::optional<uint32_t> mostTurns;
  /// Here one that is ready when it starts: `run` returns at the end.
  virtual absl::StatusOr<std::unique_ptr<Readout>>
  makeReadout(uint64_t numbers);
  std::vector<std::unique_ptr<Readout>> readouts;
};

/// What makes an executor.
struct ExecutorSetup {
  const RankProgram &program; // outlives it, as all below
  const Mesh &mesh;
  Transport &transport;
  CoreShare cores;
};

struct DeviceOptions {
  uint32_t ranks = 1;            // of this process
  uint32_t process = 0;          // its number among those of the run
  uint32_t processesHere = 1;    // of this run on this machine
  double timeoutSeconds = 60;    // for a rank, or work of a GPU
  bool shareGpu = false;         // all ranks of this machine on one GPU
  bool synchronous = false;      // GPUs: wait after each instruction
  bool tunesMatmuls = false;     // GPUs: time the library's algorithms
  bool comparesCpu = false;      // GPUs: see run/ComparingDevice.h
  bool cudnnAttention = false;   // GPUs: by cuDNN where it can
  bool wgmmaAttention = false;   // GPUs: must have the runtime's of sm_90a
  bool noWgmmaAttention = false; // GPUs: are not to run these
  uint32_t ncclMaxCtas = 0;      // GPUs: of collectives beside products; 0: any
  bool ncclRegister = false;     // GPUs: NCCL knows the plan's memory
  /// What each process of the run tells, by number.
  std::function<absl::StatusOr<std::vector<std::string>>(const std::string &)>
      exchange = [](const std::string &mine) { return std::vector{mine}; };
};

/// What a plan needs of this machine: opened, checked and loaded once for all
/// ranks of a process.
class Device {
public:
  virtual ~Device() = default;

  /// Compares what `ranksHere` ranks of this machine take in all with what
  /// there is. This process has those with threads in `cores`. Fails with
  /// resourceExhausted when there is not enough; else returns the bytes of this
  /// process.
  virtual absl::StatusOr<uint64_t>
  checkMemory(const std::vector<CoreShare> &cores, uint32_t ranksHere) = 0;
  /// Takes all the memory the rank will ever take, and binds its instructions.
  virtual absl::StatusOr<std::unique_ptr<Executor>>
  makeExecutor(const ExecutorSetup &setup) = 0;
  /// "GPU 2 (NVIDIA H200)", of a rank of this process; "": on its cores.
  virtual std::string placeOf(uint32_t) const { return ""; }
  /// What to tell at the end of a run; lines, or nothing.
  virtual std::string summary() const { return ""; }
  /// Whether what ran was right, where the device can tell.
  virtual absl::Status verdict() const { return absl::OkStatus(); }
};

} // namespace meshwork::runtime
