// One rank of a plan: its arena, its threads and its instructions, ready to
// run. All calls come from the thread that made it.
#pragma once

#include "absl/functional/function_ref.h"
#include "runtime/comm/Mesh.h"
#include "runtime/comm/Transport.h"
#include "runtime/core/Channel.h"
#include "runtime/core/Clock.h"
#include "runtime/core/Cpus.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Shards.h"
#include "runtime/core/Views.h"
#include "runtime/device/cpu/Prepare.h"
#include "runtime/io/Tokens.h"
#include <array>
#include <optional>

namespace meshwork::runtime {

/// The lists of a program.
enum class Phase : uint8_t { once, step, microbatch, update };

/// One instruction, bound to memory.
struct BoundInstruction {
  const plan::Instruction *source = nullptr;
  // One of the three is set.
  std::unique_ptr<Executable> compute;
  std::unique_ptr<PreparedCollective> collective;
  const plan::Wait *wait = nullptr;
  uint32_t channel = 0; // of a collective
  bool lastMicrobatch = false; // of a collective: only there
};

/// Told about instructions as they end; see Recorder.h and Replay.h.
class InstructionObserver {
public:
  virtual ~InstructionObserver() = default;
  /// Instruction `index` of `phase` ran from `beginNs` to `endNs` (steady
  /// clock). `times` is what a collective spent; zero for others. Called on the
  /// rank's own thread; for a collective of a channel once a Wait has seen it
  /// end.
  virtual void after(Phase phase, uint32_t index, uint32_t microbatch,
                     int64_t beginNs, int64_t endNs,
                     const CommTimes &times) = 0;
};

struct RankSetup {
  const plan::Plan &plan;
  uint32_t rank;
  const Mesh &mesh;
  const KernelLibrary &kernels;
  Transport &transport;
  const TokenSource *tokens; // null when no step will run
  uint32_t seed;
  CoreShare cores;
};

class Rank {
public:
  /// Takes all the memory this rank will ever take.
  static absl::StatusOr<std::unique_ptr<Rank>> create(const RankSetup &setup);

  /// The list that comes after weights are in place.
  absl::Status runOnce() {
    return runList(Phase::once, 0, 0, UINT32_MAX, nullptr);
  }

  /// Step `step`, counted from 0, up to where the global loss is known.
  absl::Status runToLoss(uint64_t step, double learningRate,
                         InstructionObserver *observer);
  /// The rest of the step: the optimizer.
  absl::Status runUpdate(InstructionObserver *observer);

  float loss() const;
  std::optional<float> gradNorm() const;

  uint32_t rank() const { return setup.rank; }
  const plan::Program &program() const { return ofPlan; }
  const ViewInfo &view(uint32_t index) const { return views[index]; }
  std::byte *data(uint32_t view) const;
  Strided strided(uint32_t view) const;
  /// The block of a parameter that this rank holds.
  Block block(const plan::Parameter &parameter,
              const plan::Sharded &part) const;
  const std::vector<BoundInstruction> &list(Phase phase) const {
    return lists[static_cast<size_t>(phase)];
  }
  /// Communication threads; some may have nothing to do.
  uint32_t numChannels() const {
    return static_cast<uint32_t>(channels.size());
  }
  ThreadTeam &team() { return *threads; }
  /// Waiting and moving since the last call.
  CommTimes takeTimes();
  uint64_t plannedBytes() const { return arena.size() + workspace.size(); }

private:
  Rank(const RankSetup &setup, const plan::Program &program)
      : setup(setup), ofPlan(program) {}
  absl::Status allocate();
  void placeViews();
  void writeCoordinates();
  absl::Status bind(Phase phase, const PrepareContext &context);
  absl::StatusOr<BoundInstruction> bindOne(const plan::Instruction &source,
                                           const PrepareContext &context);
  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  bindCollective(const plan::Instruction &source);
  Channel &channel(uint32_t number);
  absl::Status runList(Phase phase, uint32_t microbatch, uint32_t begin,
                       uint32_t end, InstructionObserver *observer);
  absl::Status runInline(PreparedCollective &collective, CommTimes &spent);
  absl::Status runWait(const plan::Wait &wait, Phase phase, uint32_t microbatch,
                       InstructionObserver *observer);
  absl::Status loadBatch(uint64_t step, uint32_t microbatch);
  void writeScalar(plan::InputKind kind, float value);
  const plan::Input *input(plan::InputKind kind) const;
  const plan::Result *result(plan::ResultKind kind) const;

  RankSetup setup;
  const plan::Program &ofPlan;
  std::vector<ViewInfo> views;
  std::vector<uint64_t> shifts; // bytes, by view
  Arena arena, workspace;
  uint64_t workspacePerThread = 0;
  std::unique_ptr<ThreadTeam> threads;
  std::array<std::vector<BoundInstruction>, 4> lists;
  std::vector<std::unique_ptr<Channel>> channels; // by number less one
  CommTimes times;
};

/// Arena and workspace of `program` on `threads` threads, in bytes.
absl::StatusOr<uint64_t> neededBytes(const plan::Program &program, int threads);

} // namespace meshwork::runtime
