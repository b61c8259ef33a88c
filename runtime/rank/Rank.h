// One rank of a plan: what it is given before instructions run, and what it
// gives at the end. An Executor runs them. All calls come from the thread that
// made it.
#pragma once

#include "absl/functional/function_ref.h"
#include "lib/Plan/Shards.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/io/Tokens.h"
#include "runtime/machine/Clock.h"
#include "runtime/machine/Executor.h"
#include "runtime/rank/Metric.h"
#include "runtime/rank/SampleRows.h"
#include <map>
#include <optional>

namespace meshwork::runtime {

struct RankSetup {
  const plan::Plan &plan;
  uint32_t rank;
  const Mesh &mesh;
  Device &device;
  Transport &transport;
  const TokenSource *tokens; // null when no step will run
  uint32_t seed;
  CoreShare cores;
  bool evaluates = false; // runEvaluation will be called
};

/// A view where the host can read it, and write it where `writeBack` follows.
struct HostView {
  Strided tensor;
  std::vector<std::byte> copy; // empty: in place
};

class Rank {
public:
  /// Takes all the memory this rank will ever take.
  static absl::StatusOr<std::unique_ptr<Rank>> create(const RankSetup &setup);

  /// The list that comes after weights are in place.
  absl::Status runOnce();

  /// Before startClock: the run goes on here, not at step 0.
  void startAt(const Progress &progress) {
    start = progress;
    numUpdates = progress.updates;
  }

  // One step after the other, counted from 0 or `startAt`:
  //   startClock, then for each: runToLook, look, runUpdate or skipUpdate
  // and `end` of a step any time between its update and the next one's. What
  // runs on a device that the host is ahead of does not hold up the caller.
  absl::Status startClock();
  /// Up to where loss and gradient norm are known (lookPoint); the step could
  /// be repeated from its start.
  absl::Status runToLook(uint64_t step, double learningRate,
                         InstructionObserver *observer);
  struct Look {
    float loss = 0;
    std::optional<float> gradNorm;
    /// Tensors that FP8 has cut something off; of a plan that may.
    std::optional<float> saturated;
    std::vector<Metric> metrics;
    /// Why samples could not be read. The step has then run on others, as peers
    /// wait for its collectives; its results mean nothing.
    absl::Status input;
    /// Whether a target of the step's samples counts for the loss, as far as
    /// this rank has read them. Of a plan that leaves none out always.
    bool hasTargets = true;
    bool isFinite() const;
  };
  /// Windows of an evaluation: a step's, one behind the other from `first` on.
  /// Behind the last there is, that one again.
  struct Windows {
    const TokenSource &from;
    uint64_t first, last;
  };
  /// Between two steps: up to where the loss of these windows is known, as a
  /// step would find it, but without dropout and gradients. Nothing that a
  /// later step reads changes, but for times (`restartClock`).
  absl::Status runEvaluation(const Windows &windows);
  /// Of this rank's samples of the step; of a plan that leaves none out all.
  uint64_t targets() const { return numTargets; }
  /// Which part of the batch this rank has.
  uint32_t shard() const { return firstSample(0) / setup.plan.micro_batch(); }
  /// Between two steps: what came since the end of `step` is not the next
  /// one's.
  absl::Status restartClock(uint64_t step);
  /// Waits for it.
  absl::StatusOr<Look> look();
  /// The rest of the step: the optimizer.
  absl::Status runUpdate(InstructionObserver *observer);
  /// The step ends, with weights and states as it found them.
  absl::Status skipUpdate();
  /// How often weights have changed, those before `startAt` included: what bias
  /// corrections count.
  uint64_t updates() const { return numUpdates; }
  /// Waits for the end; ns since the end of the step before, or startClock.
  absl::StatusOr<int64_t> end(uint64_t step);
  /// Whether a step may begin before the one before it has ended.
  bool runsBehind() const { return executor->runsBehind(); }

  uint32_t rank() const { return setup.rank; }
  const Mesh &mesh() const { return setup.mesh; }
  const plan::Program &program() const { return ofPlan.program; }
  const plan::ActionTable &table() const { return ofPlan.table; }
  const plan::Instruction &instruction(uint32_t list, uint32_t index) const {
    return *plan::listOf(program(), list).Get(index);
  }
  /// What stands at a place of a list when all turns are written out.
  const plan::Turn &turn(uint32_t list, uint32_t at) const {
    return ofPlan.turns[list][at];
  }
  /// "backward[3]": what stands at such a place.
  std::string nameOf(uint32_t list, uint32_t at) const {
    return ofPlan.nameOf(list, at);
  }
  const plan::ViewInfo &view(uint32_t index) const {
    return ofPlan.views[index];
  }
  /// Where the views of what stands at a place of the run's list are.
  Where where(const ListRun &run, uint32_t at) const {
    return {run.list, ofPlan.copies.variantOf(run.action),
            turn(run.list, at).turns};
  }
  /// What the view holds there, once everything that was started has ended.
  absl::StatusOr<HostView> toHost(uint32_t view, const Where &where = {}) const;
  /// Until everything that was started has ended: then any thread may read what
  /// nothing changes meanwhile.
  absl::Status settle() const { return executor->settle(); }
  absl::StatusOr<HostView> toHostBeside(uint32_t view) const;
  absl::Status writeBack(uint32_t view, const HostView &from);
  /// Whether toHost gives views in place.
  bool isOnHost() const { return executor->hostArena() != nullptr; }
  /// What this rank holds of a parameter.
  plan::Part partOf(const plan::Parameter &parameter,
                    const plan::Sharded &part) const;

  /// Communication threads or streams; some may have nothing to do.
  uint32_t numChannels() const;
  ThreadTeam &team() { return executor->team(); }
  absl::StatusOr<double> measureMatmulTflops() {
    return executor->measureMatmulTflops(setup.plan.compute());
  }
  /// Waiting and moving since the last call.
  CommTimes takeTimes() { return executor->takeTimes(); }
  std::optional<uint32_t> takeMostTurns() { return executor->takeMostTurns(); }

private:
  using Read = absl::Status (Executor::*)(uint64_t, absl::Span<std::byte>);

  Rank(const RankSetup &setup, RankProgram program)
      : setup(setup), ofPlan(std::move(program)) {}
  absl::StatusOr<HostView> toHost(uint32_t view, uint64_t place,
                                  Read read) const;
  /// How this rank takes part in each split of the input's dim.
  std::vector<layout::Cut> cutsOf(const plan::Input &input) const;
  /// Which part of each dim is this rank's.
  absl::Status writeParts();
  void keepOwn(const plan::Input &input, const std::vector<int32_t> &sequence,
               size_t k);
  /// All actions, up to the look in the last one.
  absl::Status runActions(InstructionObserver *observer);
  absl::Status runAction(uint32_t action, uint32_t begin, uint32_t end,
                         InstructionObserver *observer);
  absl::Status startReadouts();
  absl::Status loadBatch(uint32_t action);
  absl::Status writeRandom(plan::InputKind kind, uint32_t microbatch,
                           const Where &where);
  uint32_t firstSample(uint32_t microbatch) const;
  absl::Status readSample(uint32_t number, SampleRows &to) const;
  absl::Status readSamples(uint32_t first);
  absl::Status writeTargetCounts();
  absl::Status writeScalars(uint64_t step, double learningRate);
  template <typename T>
  absl::Status write(uint32_t view, absl::Span<const T> values,
                     const Where &where = {});
  absl::Status makeReadouts();
  Readout &endReadout(uint64_t step) { return *endReadouts[step % 2]; }
  /// Where a result lies; none where there is no such result.
  std::optional<uint64_t> placeOf(plan::ResultKind kind) const;
  const plan::Input *inputOf(plan::InputKind kind) const;

  RankSetup setup;
  RankProgram ofPlan;
  std::unique_ptr<Executor> executor;
  std::map<plan::InputKind, std::vector<int32_t>> batch; // of a microbatch
  Progress start;
  uint64_t currentStep = 0, numUpdates = 0;
  std::optional<Windows> evaluated; // instead of samples of training
  uint32_t lookAt = 0; // in the last action: nothing from here on before a look
  uint64_t numTargets = 0;  // of the step
  absl::Status inputStatus; // of the step
  Readout *lossReadout = nullptr, *normReadout = nullptr,
          *saturatedReadout = nullptr;
  std::vector<std::pair<const plan::Result *, Readout *>> metricReadouts;
  // Times are differences, so the step before keeps its own.
  Readout *endReadouts[2] = {};
};

} // namespace meshwork::runtime
