#include "lib/Schedules/Waits.h"

#include "lib/Schedules/Live.h"

#include <algorithm>

namespace meshwork::schedules {
namespace {

double edgeTime(const Costs *costs, const Table &table, int32_t one,
                int32_t other) {
  auto low = static_cast<size_t>(std::min(one, other));
  return costs && table.rankOf[low] != table.rankOf[low + 1]
             ? costs->transfer[low]
             : 0;
}

} // namespace

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
      add(before, reached(action), Why::order);
    before = isCompute(actions[i].kind) ? ended(action) : reached(action);
    if (options.inOrder)
      add(reached(action), started(action), Why::order);
    if (!options.inOrder || !isTransfer(actions[i].kind))
      continue;
    if (transfer != Index::none)
      add(transfer, started(action), Why::order);
    transfer = ended(action);
  }
}

void Waits::addGroup(size_t rank, size_t begin, size_t end) {
  double work = 0, longest = 0;
  for (size_t i = begin; i < end; ++i) {
    const Action &action = table.ranks[rank][i];
    uint32_t number = index.number(rank, i);
    if (options.costs)
      work += workTime(*options.costs, action.kind,
                       static_cast<size_t>(action.stage));
    addInputs(number);
    if (!isTransfer(action.kind))
      continue;
    addMatch(number);
    int32_t peer = edgeOf(action).peerStage;
    if (peer >= 0 && peer < static_cast<int64_t>(table.rankOf.size()))
      longest =
          std::max(longest, edgeTime(options.costs, table, action.stage, peer));
  }
  uint32_t number = index.number(rank, begin);
  add(started(number), ended(number), Why::order, work + longest);
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
               edgeTime(options.costs, table, stage - 1, stage));
    break;
  case Kind::backward:
  case Kind::inputGrad:
    addInput(number, find(Kind::forward, stage), Kind::forward, 0);
    if (stage < last)
      addInput(number, index.findGradient(stage + 1, microbatch),
               Kind::recvBackward,
               edgeTime(options.costs, table, stage, stage + 1));
    break;
  case Kind::weightGrad:
    addInput(number, find(Kind::inputGrad, stage), Kind::forward, 0);
    break;
  case Kind::sendForward:
    addInput(number, find(Kind::forward, stage), Kind::forward, 0);
    break;
  case Kind::sendBackward:
    addInput(number, index.findGradient(stage, microbatch), Kind::forward, 0);
    break;
  default:
    break;
  }
}

/// The result of `from`, which on another rank is what the action `receives`
/// brings, in a table that has transfers.
void Waits::addInput(uint32_t action, uint32_t from, Kind receives,
                     double time) {
  if (from != Index::none && index.hasTransfers() &&
      index.rankOf(from) != index.rankOf(action)) {
    Action to = index.action(action);
    from = index.find(receives, to.stage, to.microbatch);
    time = 0;
  }
  // Without it the action never runs.
  uint32_t to = reached(action);
  if (from == Index::none)
    add(to, to, Why::data);
  else
    add(ended(from), to, Why::data, time);
}

void Waits::addMatch(uint32_t number) {
  Action action = index.action(number);
  Edge edge = edgeOf(action);
  uint32_t peer = index.find(edge.peerKind, edge.peerStage, action.microbatch);
  if (peer == Index::none)
    add(ended(number), ended(number), Why::matched);
  else
    add(started(peer), ended(number), Why::matched,
        edgeTime(options.costs, table, action.stage, edge.peerStage));
}

/// Work that stands before is done anyway.
void Waits::addReuse(const Reuse &reuse) {
  bool early = groupOf[reuse.release] < groupOf[reuse.take];
  if (!early || isTransfer(index.action(reuse.release).kind))
    add(ended(reuse.release), reached(reuse.take), Why::copy);
}

void Waits::add(uint32_t from, uint32_t to, Why why, double time) {
  if (next.empty())
    ++first[from + 1];
  else
    waits[next[from]++] = {to, why, time};
}

void Waits::makeRoom() {
  for (size_t i = 1; i < first.size(); ++i)
    first[i] += first[i - 1];
  waits.resize(first.back());
  next.assign(first.begin(), first.end() - 1);
}

std::vector<double> Waits::times() const {
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
      when[wait->to] = std::max(when[wait->to], when[node] + wait->time);
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
