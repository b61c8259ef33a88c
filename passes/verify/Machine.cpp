#include "passes/verify/Machine.h"

#include "absl/strings/str_cat.h"
#include "lib/Plan/ProgramLives.h"
#include "lib/Plan/StatusMacros.h"

namespace meshwork::verify {
using Use = ByteMemory::Use;

Machine::Machine(const plan::Plan &plan, KernelFunctions kernels)
    : mesh(runtime::meshOf(plan)), kernels(std::move(kernels)) {}

absl::StatusOr<std::unique_ptr<Machine>>
Machine::create(const plan::Plan &plan, KernelFunctions kernels,
                const StepData &data) {
  std::unique_ptr<Machine> made(new Machine(plan, std::move(kernels)));
  for (uint32_t rank = 0; rank < made->mesh.numRanks(); ++rank) {
    absl::StatusOr<RankState> state = RankState::create(plan, rank, made->mesh);
    MESHWORK_RETURN_IF_ERROR(state.status());
    made->ranks.push_back(
        std::make_unique<Runner>(std::move(*state), plan, made->mesh, data));
  }
  return made;
}

//===-- Messages ------------------------------------------------------------//

const plan::Instruction &Machine::current(const Runner &runner) const {
  return runner.state.tables().instruction(runner.list, runner.at);
}

/// "rank 3, 0F1, forward[12] "h.0.attn"".
std::string Machine::nameOf(uint32_t rank) const {
  const Runner &runner = *ranks[rank];
  std::string text = absl::StrCat("rank ", rank);
  if (isDone(runner))
    return text + ", at the end of the step";
  const runtime::RankProgram &tables = runner.state.tables();
  if (runner.action != plan::ActionTable::none)
    absl::StrAppend(
        &text, ", ",
        plan::textOf(tables.table.lists()[runner.list],
                     tables.table.actions()[runner.action].microbatch()));
  if (runner.at < tables.turns[runner.list].size())
    absl::StrAppend(&text, ", ", tables.nameOf(runner.list, runner.at), " ",
                    plan::quote(current(runner).name()));
  return text;
}

absl::Status Machine::at(uint32_t rank, const absl::Status &status) const {
  return status.ok()
             ? status
             : absl::Status(status.code(),
                            absl::StrCat(nameOf(rank), ": ", status.message()));
}

absl::Status Machine::stuck() const {
  std::string text = "the ranks wait for each other:";
  constexpr uint32_t most = 8;
  for (uint32_t rank = 0, told = 0; rank < ranks.size() && told < most; ++rank)
    if (!isDone(*ranks[rank])) {
      absl::StrAppend(&text, "\n  ", nameOf(rank));
      ++told;
    }
  return absl::DeadlineExceededError(text);
}

//===-- A rank alone --------------------------------------------------------//

void Machine::start(Runner &runner, uint32_t action) {
  const plan::ActionTable &table = runner.state.tables().table;
  runner.action = action;
  runner.at = 0;
  runner.hasBegun = false;
  runner.channels.done = {};
  runner.list = action == plan::ActionTable::none ? table.onceList()
                : action < table.actions().size()
                    ? table.actions()[action].list()
                    : plan::ActionTable::none;
}

/// False while transfers are under way that the action would disturb.
absl::StatusOr<bool> Machine::beginAction(uint32_t rank) {
  Runner &runner = *ranks[rank];
  const runtime::RankProgram &tables = runner.state.tables();
  for (uint32_t earlier : tables.transfers.awaitedBy(runner.action))
    if (runner.underWay.count(earlier))
      return false;
  if (tables.table.beginsMicrobatch(runner.action))
    MESHWORK_RETURN_IF_ERROR(runner.inputs.giveMicrobatch(runner.action));
  runner.hasBegun = true;
  return true;
}

/// Goes on to the next action; `once` has none.
absl::Status Machine::endAction(Runner &runner) {
  if (!runner.channels.areEmpty())
    return absl::DataLossError(
        "ends with a collective that nobody has waited for");
  if (runner.action == plan::ActionTable::none)
    runner.list = plan::ActionTable::none;
  else
    start(runner, runner.action + 1);
  return absl::OkStatus();
}

/// False where the rank has to wait.
absl::StatusOr<bool> Machine::runNext(uint32_t rank) {
  Runner &runner = *ranks[rank];
  const runtime::RankProgram &tables = runner.state.tables();
  if (!runner.hasBegun && runner.action != plan::ActionTable::none) {
    absl::StatusOr<bool> begun = beginAction(rank);
    if (!begun.ok() || !*begun)
      return begun;
  }
  if (!runner.channels.waiting[0].empty())
    return false;
  if (runner.at == tables.turns[runner.list].size()) {
    MESHWORK_RETURN_IF_ERROR(endAction(runner));
    return true;
  }
  if (tables.turns[runner.list][runner.at].isGate()) {
    MESHWORK_RETURN_IF_ERROR(passGate(runner));
    return true;
  }
  const plan::Instruction &instruction = current(runner);
  if (const plan::Wait *wait = instruction.op_as_Wait())
    if (runner.channels.done[wait->channel()] < wait->count())
      return false;
  runner.state.moveTo({runner.list, tables.copies.variantOf(runner.action),
                       tables.turns[runner.list][runner.at].turns});
  MESHWORK_RETURN_IF_ERROR(perform(rank, instruction));
  // An own collective is passed when it is done.
  if (runner.channels.waiting[0].empty())
    ++runner.at;
  return true;
}

/// To the next turn of a counted repeat, or past it.
absl::Status Machine::passGate(Runner &runner) {
  if (!runner.channels.areEmpty())
    return absl::DataLossError("comes to the turn of a counted repeat with "
                               "something that nobody has waited for");
  runner.channels.done = {};
  const runtime::RankProgram &tables = runner.state.tables();
  uint32_t view = current(runner).op_as_Repeat()->count();
  auto readCount = [&](const plan::Turn &gate) -> absl::StatusOr<int32_t> {
    runner.state.moveTo(
        {runner.list, tables.copies.variantOf(runner.action), gate.turns});
    interpreter::Tensor count;
    MESHWORK_ASSIGN_OR_RETURN(count,
                              runner.state.read(runner.state.view(view)));
    return static_cast<int32_t>(count[0]);
  };
  MESHWORK_ASSIGN_OR_RETURN(
      runner.at,
      runner.gates.pass(tables.turns[runner.list], runner.at, readCount));
  return absl::OkStatus();
}

absl::Status Machine::perform(uint32_t rank,
                              const plan::Instruction &instruction) {
  Runner &runner = *ranks[rank];
  if (instruction.op_as_Wait())
    return absl::OkStatus();
  if (instruction.op_as_Collective() || instruction.channel() > 0)
    return arrive(rank, instruction);
  if (instruction.op_as_Send() || instruction.op_as_Receive())
    return startTransfer(rank);
  const runtime::RankProgram &tables = runner.state.tables();
  uint32_t number = tables.turns[runner.list][runner.at].instruction;
  bool sets = runner.action != plan::ActionTable::none &&
              tables.setting[runner.list][number] == runner.action;
  return runInstruction(instruction, sets, kernels, runner.state);
}

absl::Status Machine::arrive(uint32_t rank,
                             const plan::Instruction &instruction) {
  Runner &runner = *ranks[rank];
  Arrival arrival{&instruction, {}, false};
  auto add = [&](const auto &part) {
    arrival.parts.push_back(
        {runner.state.view(part.src()), runner.state.view(part.dst())});
  };
  if (const plan::Collective *op = instruction.op_as_Collective()) {
    arrival.isSkipped =
        op->last_only() && !runner.state.tables().table.isLast(runner.action);
    for (const plan::Transfer *part : *op->parts())
      add(*part);
  } else if (const plan::Copy *copy = instruction.op_as_Copy()) {
    add(*copy);
  } else {
    return runtime::cannotStart(instruction);
  }
  if (instruction.channel() > 0 && !arrival.isSkipped)
    for (const Arrival::Part &part : arrival.parts) {
      // Both are checked first: what it writes may be a part of what it reads,
      // or the other way round.
      MESHWORK_RETURN_IF_ERROR(runner.state.check(part.dst, Use::writes));
      MESHWORK_RETURN_IF_ERROR(runner.state.check(part.src, Use::reads));
      runner.state.begin(part.src, Use::reads);
      runner.state.begin(part.dst, Use::writes);
    }
  runner.channels.waiting[instruction.channel()].push_back(std::move(arrival));
  return absl::OkStatus();
}

absl::Status Machine::startTransfer(uint32_t rank) {
  Runner &runner = *ranks[rank];
  const runtime::RankProgram &tables = runner.state.tables();
  runtime::PairRequest request = tables.pairRequest(runner.list, mesh, nullptr);
  Passing passing{runner.action, {}};
  for (uint32_t view : *plan::transferOf(tables.program, runner.list).parts)
    passing.parts.push_back(runner.state.view(view));
  for (const PlacedView &view : passing.parts) {
    Use use = request.sends ? Use::reads : Use::writes;
    MESHWORK_RETURN_IF_ERROR(runner.state.check(view, use));
    runner.state.begin(view, use);
  }
  runner.underWay.insert(runner.action);
  auto &lane = request.sends
                   ? lanes[{rank, request.peer, request.lane}].sent
                   : lanes[{request.peer, rank, request.lane}].received;
  lane.push_back(std::move(passing));
  return absl::OkStatus();
}

absl::StatusOr<bool> Machine::advance(uint32_t rank) {
  bool moved = false;
  while (!isDone(*ranks[rank])) {
    absl::StatusOr<bool> next = runNext(rank);
    if (!next.ok())
      return at(rank, next.status());
    if (!*next)
      break;
    moved = true;
  }
  return moved;
}

//===-- All ranks -----------------------------------------------------------//

void Machine::pop(uint32_t rank, uint32_t channel) {
  Runner &runner = *ranks[rank];
  runner.channels.waiting[channel].pop_front();
  ++runner.channels.done[channel];
  runner.at += channel == 0;
}

absl::Status Machine::finishAlone(uint32_t rank, uint32_t channel) {
  RankState &state = ranks[rank]->state;
  const Arrival &arrival = ranks[rank]->channels.waiting[channel].front();
  if (!arrival.isSkipped)
    for (const Arrival::Part &part : arrival.parts) {
      state.end(part.src, Use::reads);
      state.end(part.dst, Use::writes);
      MESHWORK_RETURN_IF_ERROR(at(rank, state.copy(part.src, part.dst)));
    }
  pop(rank, channel);
  return absl::OkStatus();
}

absl::StatusOr<bool> Machine::moveChannel(uint32_t rank, uint32_t channel) {
  std::deque<Arrival> &queue = ranks[rank]->channels.waiting[channel];
  if (queue.empty())
    return false;
  if (!queue.front().meets()) {
    MESHWORK_RETURN_IF_ERROR(finishAlone(rank, channel));
    return true;
  }
  std::vector<uint32_t> axes(queue.front().op().axes()->begin(),
                             queue.front().op().axes()->end());
  std::vector<uint32_t> group = mesh.group(rank, axes);
  if (group[0] != rank)
    return false;
  std::vector<RankState *> members;
  std::vector<const Arrival *> arrivals;
  for (uint32_t member : group) {
    const auto &theirs = ranks[member]->channels.waiting[channel];
    if (theirs.empty() || !theirs.front().meets() ||
        !std::equal(axes.begin(), axes.end(),
                    theirs.front().op().axes()->begin(),
                    theirs.front().op().axes()->end()))
      return false;
    members.push_back(&ranks[member]->state);
    arrivals.push_back(&theirs.front());
  }
  for (size_t i = 0; channel > 0 && i < group.size(); ++i)
    for (const Arrival::Part &part : arrivals[i]->parts) {
      members[i]->end(part.src, Use::reads);
      members[i]->end(part.dst, Use::writes);
    }
  MESHWORK_RETURN_IF_ERROR(at(rank, meet(members, arrivals)));
  for (uint32_t member : group)
    pop(member, channel);
  return true;
}

absl::StatusOr<bool> Machine::moveLanes() {
  bool moved = false;
  for (auto &[lane, state] : lanes)
    while (!state.sent.empty() && !state.received.empty()) {
      auto [from, to, number] = lane;
      const Passing &sent = state.sent.front(),
                    &received = state.received.front();
      for (const PlacedView &view : sent.parts)
        rank(from).end(view, Use::reads);
      for (const PlacedView &view : received.parts)
        rank(to).end(view, Use::writes);
      MESHWORK_RETURN_IF_ERROR(
          at(from, pass(rank(from), sent, rank(to), received)));
      ranks[from]->underWay.erase(sent.action);
      ranks[to]->underWay.erase(received.action);
      state.sent.pop_front();
      state.received.pop_front();
      moved = true;
    }
  return moved;
}

absl::StatusOr<bool> Machine::moveChannels(uint32_t first, uint32_t last) {
  bool moved = false;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (uint32_t channel = first; channel <= last; ++channel) {
      absl::StatusOr<bool> one = moveChannel(rank, channel);
      if (!one.ok())
        return one;
      moved |= *one;
    }
  return moved;
}

/// What runs beside the ranks ends as late as it may, when nobody gets further
/// without it: so who touches its bytes too early is found.
absl::StatusOr<bool> Machine::moveAll() {
  absl::StatusOr<bool> moved = moveLanes();
  if (moved.ok() && !*moved)
    moved = moveChannels(0, 0);
  return moved.ok() && !*moved ? moveChannels(1, Channels::most) : moved;
}

absl::Status Machine::runAll() {
  for (bool moves = true; moves;) {
    moves = false;
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      absl::StatusOr<bool> advanced = advance(rank);
      MESHWORK_RETURN_IF_ERROR(advanced.status());
      moves |= *advanced;
    }
    absl::StatusOr<bool> moved = moveAll();
    MESHWORK_RETURN_IF_ERROR(moved.status());
    moves |= *moved;
  }
  for (const auto &runner : ranks)
    if (!isDone(*runner))
      return stuck();
  return absl::OkStatus();
}

absl::Status Machine::runStep() {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    MESHWORK_RETURN_IF_ERROR(at(rank, ranks[rank]->inputs.giveOnce()));
    start(*ranks[rank], plan::ActionTable::none);
  }
  MESHWORK_RETURN_IF_ERROR(runAll());
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    MESHWORK_RETURN_IF_ERROR(at(rank, ranks[rank]->inputs.giveStep()));
    start(*ranks[rank], 0);
  }
  return runAll();
}

} // namespace meshwork::verify
