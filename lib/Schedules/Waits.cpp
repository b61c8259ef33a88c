#include "lib/Schedules/Waits.h"

#include "lib/Schedules/Live.h"

#include <algorithm>

namespace meshwork::schedules {

static double timeOf(const Costs &costs, int32_t edge) {
  return edge == Waits::noEdge ? 0 : costs.transfer[static_cast<size_t>(edge)];
}

/// What stays on a rank takes no time.
int32_t Waits::edgeBetween(int32_t one, int32_t other) const {
  int32_t low = std::min(one, other);
  auto at = static_cast<size_t>(low);
  return table.rankOf[at] != table.rankOf[at + 1] ? low : noEdge;
}

Waits::Waits(const Table &table, const Index &index, const Options &options)
    : table(table), index(index), options(options) {
  findGroups();
  std::vector<Reuse> reused;
  if (options.reuse)
    reused = reusedCopies(table, index, options.copies);
  first.assign(size() + 1, 0);
  addAll(reused);
  makeRoom();
  addAll(reused);
  std::vector<uint32_t>().swap(next);
}

void Waits::addAll(const std::vector<Reuse> &reused) {
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    addOrder(rank);
    for (size_t begin = 0, end; begin < table.ranks[rank].size(); begin = end) {
      end = endOfGroup(table.ranks[rank], begin);
      addGroup(rank, begin, end);
    }
  }
  for (const Reuse &reuse : reused)
    addReuse(reuse);
}

void Waits::findGroups() {
  groupOf.reserve(index.size());
  for (const std::vector<Action> &rank : table.ranks)
    for (size_t begin = 0, end; begin < rank.size(); begin = end) {
      end = endOfGroup(rank, begin);
      firstOf.push_back(static_cast<uint32_t>(groupOf.size()));
      groupOf.insert(groupOf.end(), end - begin, numGroups);
      ++numGroups;
    }
}

/// The rank itself: work holds it up until it is done, all else is only begun.
void Waits::addOrder(size_t rank) {
  const std::vector<Action> &actions = table.ranks[rank];
  uint32_t before = Index::none, transfer = Index::none;
  for (size_t i = 0; i < actions.size(); i = endOfGroup(actions, i)) {
    uint32_t action = index.number(rank, i);
    if (before != Index::none)
      add(before, {reached(action)});
    before = isCompute(actions[i].kind) ? ended(action) : reached(action);
    if (options.inOrder)
      add(reached(action), {started(action)});
    if (!options.inOrder || !isTransfer(actions[i].kind))
      continue;
    if (transfer != Index::none)
      add(transfer, {started(action)});
    transfer = ended(action);
  }
}

void Waits::addGroup(size_t rank, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    uint32_t number = index.number(rank, i);
    addInputs(number);
    if (isTransfer(table.ranks[rank][i].kind))
      addMatch(number);
  }
  uint32_t number = index.number(rank, begin);
  add(started(number), {ended(number), Why::order, /*isWork=*/true});
}

void Waits::addInputs(uint32_t number) {
  Action action = index.action(number);
  int32_t stage = action.stage, microbatch = action.microbatch;
  auto last = static_cast<int32_t>(table.rankOf.size()) - 1;
  auto find = [&](Kind kind, int32_t of) {
    return index.find(kind, of, microbatch);
  };
  switch (action.kind) {
  case Kind::forward:
    if (stage > 0)
      addInput(number, find(Kind::forward, stage - 1), Kind::recvForward,
               edgeBetween(stage - 1, stage));
    break;
  case Kind::backward:
  case Kind::inputGrad:
    addInput(number, find(Kind::forward, stage), Kind::forward, noEdge);
    if (stage < last)
      addInput(number, index.findGradient(stage + 1, microbatch),
               Kind::recvBackward, edgeBetween(stage, stage + 1));
    break;
  case Kind::weightGrad:
    addInput(number, find(Kind::inputGrad, stage), Kind::forward, noEdge);
    break;
  case Kind::sendForward:
    addInput(number, find(Kind::forward, stage), Kind::forward, noEdge);
    break;
  case Kind::sendBackward:
    addInput(number, index.findGradient(stage, microbatch), Kind::forward,
             noEdge);
    break;
  default:
    break;
  }
}

/// The result of `from`, which on another rank is what the action `receives`
/// brings, in a table that has transfers.
void Waits::addInput(uint32_t action, uint32_t from, Kind receives,
                     int32_t edge) {
  if (from != Index::none && index.hasTransfers() &&
      index.rankOf(from) != index.rankOf(action)) {
    Action to = index.action(action);
    from = index.find(receives, to.stage, to.microbatch);
    edge = noEdge;
  }
  // Without it the action never runs.
  uint32_t to = reached(action);
  if (from == Index::none)
    add(to, {to, Why::data});
  else
    add(ended(from), {to, Why::data, /*isWork=*/false, edge});
}

void Waits::addMatch(uint32_t number) {
  Action action = index.action(number);
  Edge edge = edgeOf(action);
  uint32_t peer = index.find(edge.peerKind, edge.peerStage, action.microbatch);
  if (peer == Index::none)
    add(ended(number), {ended(number), Why::matched});
  else
    add(started(peer), {ended(number), Why::matched, /*isWork=*/false,
                        edgeBetween(action.stage, edge.peerStage)});
}

/// Work that stands before is done anyway.
void Waits::addReuse(const Reuse &reuse) {
  bool early = groupOf[reuse.release] < groupOf[reuse.take];
  if (!early || isTransfer(index.action(reuse.release).kind))
    add(ended(reuse.release), {reached(reuse.take), Why::copy});
}

void Waits::add(uint32_t from, const Wait &wait) {
  if (next.empty())
    ++first[from + 1];
  else
    waits[next[from]++] = wait;
}

void Waits::makeRoom() {
  for (size_t i = 1; i < first.size(); ++i)
    first[i] += first[i - 1];
  waits.resize(first.back());
  next.assign(first.begin(), first.end() - 1);
}

/// Of what starts together: its work, and the longest of its transfers.
std::vector<double> Waits::workTimes(const Costs &costs) const {
  std::vector<double> work(numGroups, 0), longest(numGroups, 0);
  for (uint32_t number = 0; number < index.size(); ++number) {
    const Action &action = index.action(number);
    uint32_t group = groupOf[number];
    work[group] +=
        workTime(costs, action.kind, static_cast<size_t>(action.stage));
    int32_t peer = isTransfer(action.kind) ? edgeOf(action).peerStage : -1;
    if (peer >= 0 && peer < static_cast<int64_t>(table.rankOf.size()))
      longest[group] = std::max(longest[group],
                                timeOf(costs, edgeBetween(action.stage, peer)));
  }
  for (uint32_t group = 0; group < numGroups; ++group)
    work[group] += longest[group];
  return work;
}

std::vector<double> Waits::times(const Costs &costs) const {
  std::vector<double> work = workTimes(costs);
  std::vector<uint32_t> missing(size(), 0), ready;
  for (const Wait &wait : waits)
    ++missing[wait.to];
  for (uint32_t node = 0; node < size(); ++node)
    if (missing[node] == 0)
      ready.push_back(node);
  std::vector<double> when(size(), 0);
  while (!ready.empty()) {
    uint32_t node = ready.back();
    ready.pop_back();
    for (const Wait *wait = begin(node); wait != end(node); ++wait) {
      double time = timeOf(costs, wait->edge) +
                    (wait->isWork ? work[node % numGroups] : 0);
      when[wait->to] = std::max(when[wait->to], when[node] + time);
      if (--missing[wait->to] == 0)
        ready.push_back(wait->to);
    }
  }
  for (uint32_t node = 0; node < size(); ++node)
    if (missing[node] > 0)
      when[node] = never;
  return when;
}

} // namespace meshwork::schedules
