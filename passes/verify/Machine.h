// Runs a plan on all its ranks in one process, by the definitions in Plan.fbs:
// a launch by its kernel's function, not its machine code; values in double
// precision; memory byte by byte (ByteMemory.h). Ranks take turns, each as far
// as it gets; where none gets further, the run ends with whom each waits for.
//
//   auto machine = Machine::create(plan, functions, data);
//   (*machine)->rank(3).write(view, values);    // weights, for example
//   absl::Status status = (*machine)->runStep();
#pragma once

#include "passes/verify/Instructions.h"
#include "passes/verify/Meetings.h"
#include "passes/verify/StepData.h"
#include <memory>
#include <set>
#include <tuple>

namespace meshwork::verify {

class Machine {
public:
  /// All of them outlive it; the plan has been checked (checkPlan).
  static absl::StatusOr<std::unique_ptr<Machine>>
  create(const plan::Plan &plan, KernelFunctions kernels, const StepData &data);

  /// The list `once`, then one optimizer step. Errors name the rank, the action
  /// and the instruction.
  absl::Status runStep();

  uint32_t numRanks() const { return mesh.numRanks(); }
  RankState &rank(uint32_t number) { return ranks[number]->state; }
  uint32_t coordinate(uint32_t rank, uint32_t axis) const {
    return mesh.coordinate(rank, axis);
  }

private:
  /// A rank on its way through the table of actions.
  struct Runner {
    Runner(RankState state, const plan::Plan &plan, const runtime::Mesh &mesh,
           const StepData &data)
        : state(std::move(state)), inputs(plan, mesh, this->state, data) {}
    RankState state;
    RankInputs inputs;
    uint32_t action = plan::ActionTable::none; // that runs; none: `once`
    uint32_t list = plan::ActionTable::none;   // of it; none: it has ended
    uint32_t at = 0;                           // RankProgram.turns
    bool hasBegun = false;                     // the action
    plan::Gates gates;                         // of the list
    Channels channels;
    std::set<uint32_t> underWay; // actions that sent or receive
  };
  /// Sender, receiver and lane (runtime::PairRequest).
  using Lane = std::tuple<uint32_t, uint32_t, uint32_t>;
  struct LaneState {
    std::deque<Passing> sent, received;
  };

  Machine(const plan::Plan &plan, KernelFunctions kernels);

  void start(Runner &runner, uint32_t action);
  absl::Status runAll();
  /// As far as the rank gets alone. Whether it got anywhere.
  absl::StatusOr<bool> advance(uint32_t rank);
  absl::StatusOr<bool> beginAction(uint32_t rank);
  absl::Status endAction(Runner &runner);
  absl::StatusOr<bool> runNext(uint32_t rank);
  absl::Status passGate(Runner &runner);
  absl::Status perform(uint32_t rank, const plan::Instruction &instruction);
  absl::Status arrive(uint32_t rank, const plan::Instruction &instruction);
  absl::Status startTransfer(uint32_t rank);
  /// All that have what they wait for. Whether there was something.
  absl::StatusOr<bool> moveAll();
  absl::StatusOr<bool> moveChannels(uint32_t first, uint32_t last);
  absl::StatusOr<bool> moveChannel(uint32_t rank, uint32_t channel);
  /// The first there, which meets nobody.
  absl::Status finishAlone(uint32_t rank, uint32_t channel);
  void pop(uint32_t rank, uint32_t channel);
  absl::StatusOr<bool> moveLanes();

  bool isDone(const Runner &runner) const {
    return runner.list == plan::ActionTable::none;
  }
  const plan::Instruction &current(const Runner &runner) const;
  std::string nameOf(uint32_t rank) const;
  absl::Status at(uint32_t rank, const absl::Status &status) const;
  absl::Status stuck() const;

  runtime::Mesh mesh;
  KernelFunctions kernels;
  std::vector<std::unique_ptr<Runner>> ranks;
  std::map<Lane, LaneState> lanes;
};

} // namespace meshwork::verify
