// What runs lists, on every device: instructions are bound to memory once, and
// then done one after the other. A device says how each is done.
//
//   class CpuExecutor : public ListExecutor<CpuInstruction> { ... };
//   MESHWORK_RETURN_IF_ERROR(made->bindLists(moving, arena, bindCompute));
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "lib/Plan/Views.h"
#include "runtime/machine/Clock.h"
#include "runtime/machine/Way.h"
#include <algorithm>
#include <map>
#include <utility>

namespace meshwork::runtime {

/// An instruction, bound to memory. One of the first four is set.
template <typename Compute, typename Collective, typename Transfer>
struct BoundInstruction {
  std::unique_ptr<Compute> compute;
  std::unique_ptr<Collective> collective;
  std::unique_ptr<Transfer> transfer;
  const plan::Wait *wait = nullptr;
  const plan::Instruction *source = nullptr;
  uint32_t channel = 0;                      // that it is started on
  bool lastOnly = false;                     // of a collective
  uint32_t setsIn = plan::ActionTable::none; // the action; later ones add
};

template <typename Bound> class ListExecutor : public Executor {
public:
  absl::Status run(const ListRun &list, InstructionObserver *watcher) override;
  CommTimes takeTimes() override { return std::exchange(times, CommTimes()); }

protected:
  explicit ListExecutor(const ExecutorSetup &setup)
      : setup(setup), known(setup.program) {}

  using BindCompute = absl::FunctionRef<absl::Status(
      Bound &bound, uint32_t list, uint32_t instruction)>;
  /// All instructions in all variants of their lists. `moving` is moved to
  /// where views are each time. The executor ends with `lists.clear()`, before
  /// what they are bound to.
  absl::Status bindLists(RankProgram &moving, std::byte *arena,
                         BindCompute bindCompute);
  const std::vector<Bound> &boundOf(const ListRun &list) const {
    return lists[list.list][setup.program.copies.variantOf(list.action)];
  }
  /// Whether what stands at `at` is not done in this run: in another action
  /// only, or not in an evaluation.
  bool skips(const ListRun &list, uint32_t at) const {
    const Bound &one = boundOf(list)[at];
    return (one.lastOnly && !setup.program.table.isLast(list.action)) ||
           setup.program.leavesOut(list, at);
  }
  /// Does what stands at `at`, or has a channel or a lane begin it. Adds to
  /// `spent` what a collective spent that nothing ran beside.
  absl::Status perform(const ListRun &list, uint32_t at, CommTimes &spent);

  void count(const CommTimes &spent) {
    times.waitNs += spent.waitNs;
    times.moveNs += spent.moveNs;
  }

  // How a device makes them.
  virtual absl::Status bindCollective(Bound &bound,
                                      CollectiveRequest request) = 0;
  virtual absl::Status bindTransfer(Bound &bound, uint32_t list,
                                    PairRequest request) = 0;
  /// Makes its channel, if it is the first there.
  virtual absl::Status bindChannel(Bound &bound) = 0;

  // How it does them.
  /// The list begins, or a turn of a counted repeat begins or has ended:
  /// nothing is under way in channels.
  virtual void restartChannels() = 0;
  /// All of `list`, whose end is known; there is no gate in it.
  virtual absl::Status runInstructions(const ListRun &list) = 0;
  virtual absl::Status compute(const Bound &one, bool sets) = 0;
  virtual absl::Status meet(const Bound &collective, CommTimes &spent) = 0;
  /// In its channel; one that is skipped still counts there.
  virtual absl::Status start(const Bound &one, bool isSkipped, uint32_t at,
                             CommTimes &spent) = 0;
  virtual absl::Status join(const plan::Wait &wait, const ListRun &list) = 0;
  virtual absl::Status startTransfer(const Bound &one, const ListRun &list) = 0;
  /// What runs next may disturb it. With an observer it has ended behind this.
  /// What it is told is `spent`; what the rank is told, added to `times`.
  virtual absl::Status finishTransfer(const Bound &one, const ListRun &list,
                                      CommTimes &spent) = 0;

  ExecutorSetup setup;
  // By list and variant, as RankProgram.turns.
  std::vector<std::vector<std::vector<Bound>>> lists;
  InstructionObserver *observer = nullptr; // of the list that runs
  CommTimes times;

private:
  /// A transfer that its action has started.
  struct UnderWay {
    const Bound *bound;
    ListRun list;
    int64_t beginNs;
  };

  absl::Status bind(Bound &bound, uint32_t list, uint32_t instruction,
                    const RankProgram &program, std::byte *arena,
                    BindCompute bindCompute);
  absl::Status awaitTransfers(const ListRun &list);

  KnownCounts known;
  std::map<uint32_t, UnderWay> underWay; // by action
};

template <typename Bound>
absl::Status ListExecutor<Bound>::bindLists(RankProgram &moving,
                                            std::byte *arena,
                                            BindCompute bindCompute) {
  lists.resize(moving.table.lists().size());
  for (Where where; where.list < lists.size(); ++where.list)
    for (where.variant = 0;
         where.variant < moving.copies.variantsOf(where.list);
         ++where.variant) {
      std::vector<Bound> &all = lists[where.list].emplace_back();
      all.reserve(moving.turns[where.list].size());
      for (const plan::Turn &turn : moving.turns[where.list]) {
        where.turns = turn.turns;
        moving.moveTo(where);
        MESHWORK_RETURN_IF_ERROR(bind(all.emplace_back(), where.list,
                                      turn.instruction, moving, arena,
                                      bindCompute));
      }
    }
  return absl::OkStatus();
}

template <typename Bound>
absl::Status
ListExecutor<Bound>::bind(Bound &bound, uint32_t list, uint32_t instruction,
                          const RankProgram &program, std::byte *arena,
                          BindCompute bindCompute) {
  const plan::Instruction &source =
      *plan::listOf(program.program, list).Get(instruction);
  bound.source = &source;
  bound.channel = source.channel();
  bound.setsIn = program.setting[list][instruction];
  bound.wait = source.op_as_Wait();
  absl::Status status;
  if (const plan::Collective *op = source.op_as_Collective()) {
    bound.lastOnly = op->last_only();
    status = bindCollective(bound, program.request(source, arena));
  } else if (source.op_as_Send() || source.op_as_Receive()) {
    status =
        bindTransfer(bound, list, program.pairRequest(list, setup.mesh, arena));
  } else if (!bound.wait && !source.op_as_Repeat()) {
    status = bound.channel == 0 || source.op_as_Copy()
                 ? bindCompute(bound, list, instruction)
                 : cannotStart(source);
  }
  if (status.ok() && bound.channel > 0)
    status = bindChannel(bound);
  if (status.ok())
    return status;
  return absl::Status(status.code(),
                      absl::StrCat("instruction ", plan::quote(source.name()),
                                   ": ", status.message()));
}

template <typename Bound>
absl::Status ListExecutor<Bound>::run(const ListRun &given,
                                      InstructionObserver *watcher) {
  observer = watcher;
  MESHWORK_RETURN_IF_ERROR(awaitTransfers(given));
  return runParts(setup.program, given, *this, known, [&](const ListRun &part) {
    if (countsAnew(setup.program.turns[part.list], part.begin))
      restartChannels();
    return runInstructions(part);
  });
}

/// Those that the action would disturb. Who watches is told of each as of an
/// instruction that ran from its start to here.
template <typename Bound>
absl::Status ListExecutor<Bound>::awaitTransfers(const ListRun &list) {
  for (uint32_t action : setup.program.transfers.awaitedBy(list.action)) {
    auto found = underWay.find(action);
    if (found == underWay.end())
      continue; // The update runs in parts.
    UnderWay one = found->second;
    underWay.erase(found);
    CommTimes spent;
    MESHWORK_RETURN_IF_ERROR(finishTransfer(*one.bound, one.list, spent));
    if (observer)
      observer->after(one.list, 0, one.beginNs, steadyNs(), spent);
  }
  return absl::OkStatus();
}

template <typename Bound>
absl::Status ListExecutor<Bound>::perform(const ListRun &list, uint32_t at,
                                          CommTimes &spent) {
  const Bound &one = boundOf(list)[at];
  bool isSkipped = skips(list, at);
  if (one.channel > 0)
    return start(one, isSkipped, at, spent);
  if (isSkipped)
    return absl::OkStatus();
  if (one.compute)
    return compute(one, /*sets=*/list.action == one.setsIn);
  if (one.wait)
    return join(*one.wait, list);
  if (one.transfer) {
    underWay[list.action] = {&one, list, steadyNs()};
    return startTransfer(one, list);
  }
  return meet(one, spent);
}

} // namespace meshwork::runtime
