#include "test/Schedules/TokenMachine.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace meshwork::schedules {
namespace {

using Key = std::tuple<Kind, int32_t, int32_t>;
Key keyOf(const Action &a) { return {a.kind, a.stage, a.microbatch}; }

bool isMove(Kind kind) {
  return kind == Kind::sendForward || kind == Kind::recvForward ||
         kind == Kind::sendBackward || kind == Kind::recvBackward;
}

Key otherEnd(const Action &a) {
  switch (a.kind) {
  case Kind::sendForward:
    return {Kind::recvForward, a.stage + 1, a.microbatch};
  case Kind::recvForward:
    return {Kind::sendForward, a.stage - 1, a.microbatch};
  case Kind::sendBackward:
    return {Kind::recvBackward, a.stage - 1, a.microbatch};
  default:
    return {Kind::sendBackward, a.stage + 1, a.microbatch};
  }
}

class Machine {
public:
  Machine(const Table &table, const JudgeOptions &options)
      : table(table), options(options), at(table.ranks.size(), 0),
        posted(table.ranks.size()) {
    for (const std::vector<Action> &rank : table.ranks)
      for (const Action &a : rank)
        exists.insert(keyOf(a)), hasMoves |= isMove(a.kind);
    for (const std::vector<Action> &rank : table.ranks)
      handOutCopies(rank);
  }

  bool run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t rank = 0; rank < table.ranks.size(); ++rank)
        moves = advance(rank) || complete(rank) || moves;
    }
    for (size_t rank = 0; rank < table.ranks.size(); ++rank)
      if (at[rank] < table.ranks[rank].size() || !posted[rank].empty())
        return false;
    return true;
  }

private:
  using Batch = std::vector<Action>;

  Batch next(size_t rank) const {
    Batch batch;
    for (size_t i = at[rank]; i < table.ranks[rank].size(); ++i) {
      batch.push_back(table.ranks[rank][i]);
      if (!table.ranks[rank][i].withNext)
        break;
    }
    return batch;
  }

  bool advance(size_t rank) {
    Batch batch = next(rank);
    if (batch.empty() ||
        !std::all_of(batch.begin(), batch.end(),
                     [&](const Action &a) { return isAble(a); }))
      return false;
    at[rank] += batch.size();
    if (isMove(batch[0].kind))
      posted[rank].push_back(batch);
    else
      for (const Action &a : batch)
        done.insert(keyOf(a));
    return true;
  }

  /// Whether the other end is posted, and is next where that counts.
  bool isThere(const Key &end) const {
    if (done.contains(end))
      return true;
    for (const std::vector<Batch> &batches : posted)
      for (size_t i = 0; i < batches.size(); ++i)
        for (const Action &a : batches[i])
          if (keyOf(a) == end)
            return i == 0 || !options.transfersInOrder;
    return false;
  }

  bool complete(size_t rank) {
    for (size_t i = 0; i < posted[rank].size(); ++i) {
      const Batch &batch = posted[rank][i];
      if (std::all_of(batch.begin(), batch.end(),
                      [&](const Action &a) { return isThere(otherEnd(a)); })) {
        for (const Action &a : batch)
          done.insert(keyOf(a));
        posted[rank].erase(posted[rank].begin() +
                           static_cast<std::ptrdiff_t>(i));
        return true;
      }
      if (options.transfersInOrder)
        return false;
    }
    return false;
  }

  bool has(Kind kind, int32_t stage, int32_t i) const {
    return done.contains({kind, stage, i});
  }
  bool hasGradient(int32_t stage, int32_t i) const {
    return has(Kind::backward, stage, i) || has(Kind::inputGrad, stage, i);
  }
  bool arrives(Kind kind, const Action &a, int32_t from) const {
    bool moved =
        hasMoves && table.rankOf[size_t(a.stage)] != table.rankOf[size_t(from)];
    return moved                       ? has(kind, a.stage, a.microbatch)
           : kind == Kind::recvForward ? has(Kind::forward, from, a.microbatch)
                                       : hasGradient(from, a.microbatch);
  }

  bool isAble(const Action &a) const {
    auto before = usedBefore.equal_range(keyOf(a));
    for (auto one = before.first; one != before.second; ++one)
      if (!done.contains(one->second))
        return false;
    bool isLast = a.stage + 1 == std::ssize(table.rankOf);
    switch (a.kind) {
    case Kind::forward:
      return a.stage == 0 || arrives(Kind::recvForward, a, a.stage - 1);
    case Kind::backward:
    case Kind::inputGrad:
      return has(Kind::forward, a.stage, a.microbatch) &&
             (isLast || arrives(Kind::recvBackward, a, a.stage + 1));
    case Kind::weightGrad:
      return has(Kind::inputGrad, a.stage, a.microbatch);
    case Kind::sendForward:
      return has(Kind::forward, a.stage, a.microbatch);
    case Kind::sendBackward:
      return hasGradient(a.stage, a.microbatch);
    default:
      return true;
    }
  }

  struct Life {
    Key take, release;
    size_t begin, end; // places; the end is that of what starts together
  };

  /// Pairs of kinds whose buffers are one: taken by the one, released by the
  /// other.
  static std::vector<std::pair<std::vector<Kind>, std::vector<Kind>>> pairs() {
    using enum Kind;
    return {{{recvForward}, {forward}},
            {{forward}, {sendForward}},
            {{recvBackward}, {backward, inputGrad}},
            {{backward, inputGrad}, {sendBackward}},
            {{forward}, {backward, weightGrad}},
            {{inputGrad}, {weightGrad}}};
  }

  void handOutCopies(const std::vector<Action> &rank) {
    for (int32_t stage = 0; stage < std::ssize(table.rankOf); ++stage)
      for (const auto &[takes, releases] : pairs())
        handOut(livesOf(rank, stage, takes, releases));
  }

  static std::vector<Life> livesOf(const std::vector<Action> &rank,
                                   int32_t stage,
                                   const std::vector<Kind> &takes,
                                   const std::vector<Kind> &releases) {
    auto is = [](const std::vector<Kind> &kinds, Kind kind) {
      return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    };
    std::vector<Life> lives;
    for (size_t i = 0; i < rank.size(); ++i)
      for (size_t j = 0; j < rank.size(); ++j) {
        if (rank[i].stage != stage || rank[j].stage != stage ||
            rank[i].microbatch != rank[j].microbatch ||
            !is(takes, rank[i].kind) || !is(releases, rank[j].kind))
          continue;
        size_t end = j;
        while (rank[end].withNext)
          ++end;
        lives.push_back({keyOf(rank[i]), keyOf(rank[j]), i, end});
      }
    return lives;
  }

  /// In order of their places: the lowest copy whose last life is over, or one
  /// that nobody had. Where there is none, what ends first has to end before.
  /// A copy is known by the life that had it last.
  void handOut(const std::vector<Life> &lives) {
    auto copies = static_cast<size_t>(std::max(options.copies, 1));
    for (const Life &life : lives)
      if (options.copies == 0)
        copies = std::max(
            copies, static_cast<size_t>(std::count_if(
                        lives.begin(), lives.end(), [&](const Life &other) {
                          return other.begin <= life.begin &&
                                 other.end >= life.begin;
                        })));
    std::vector<const Life *> last;
    for (const Life &life : lives) {
      auto first =
          std::find_if(last.begin(), last.end(), [&](const Life *before) {
            return before->end < life.begin;
          });
      if (first == last.end() && last.size() < copies) {
        last.push_back(&life);
        continue;
      }
      if (first == last.end())
        first = std::min_element(
            last.begin(), last.end(),
            [](const Life *a, const Life *b) { return a->end < b->end; });
      usedBefore.emplace(life.take, (*first)->release);
      *first = &life;
    }
  }

  const Table &table;
  JudgeOptions options;
  std::vector<size_t> at;
  std::vector<std::vector<Batch>> posted;
  std::set<Key> exists, done;
  std::multimap<Key, Key> usedBefore;
  bool hasMoves = false;
};

} // namespace

bool runsToItsEnd(const Table &table, const JudgeOptions &options) {
  return Machine(table, options).run();
}

} // namespace meshwork::schedules
