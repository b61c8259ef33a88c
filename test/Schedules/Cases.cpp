#include "test/Schedules/Cases.h"

#include "lib/Schedules/Index.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace meshwork::schedules {
namespace {

int32_t below(std::mt19937 &random, size_t limit) {
  return static_cast<int32_t>(random() % limit);
}

Table emptyTable(int32_t ranks, int32_t microbatches) {
  Table table{microbatches, {}, {}};
  table.ranks.resize(static_cast<size_t>(ranks));
  for (int32_t rank = 0; rank < ranks; ++rank)
    table.rankOf.push_back(rank);
  return table;
}

/// A run of a pipeline in which any rank may do anything that it can.
class RandomRun {
public:
  explicit RandomRun(std::mt19937 &random) : random(random) {
    int32_t ranks = 1 + below(random, 4);
    table = emptyTable(ranks, 1 + below(random, 4));
    for (int32_t more = below(random, 4); more > 0; --more)
      table.rankOf.push_back(below(random, static_cast<size_t>(ranks)));
    std::shuffle(table.rankOf.begin(), table.rankOf.end(), random);
    hasTransfers = below(random, 4) > 0;
    addAll();
  }

  Table run() {
    while (!open.empty()) {
      std::vector<size_t> able;
      for (size_t i = 0; i < open.size(); ++i)
        if (isAble(open[i]))
          able.push_back(i);
      size_t chosen = able[static_cast<size_t>(below(random, able.size()))];
      Action action = open[chosen];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(chosen));
      done.insert(keyOf(action));
      rankOfStage(action.stage).push_back(action);
    }
    postTogether();
    return std::move(table);
  }

private:
  using Key = std::tuple<Kind, int32_t, int32_t>;
  static Key keyOf(const Action &action) {
    return {action.kind, action.stage, action.microbatch};
  }

  std::vector<Action> &rankOfStage(int32_t stage) {
    return table
        .ranks[static_cast<size_t>(table.rankOf[static_cast<size_t>(stage)])];
  }

  bool crosses(int32_t low) const {
    auto stage = static_cast<size_t>(low);
    return low >= 0 && stage + 1 < table.rankOf.size() &&
           table.rankOf[stage] != table.rankOf[stage + 1];
  }

  void addAll() {
    for (int32_t i = 0; i < table.microbatches; ++i)
      for (int32_t stage = 0; stage < std::ssize(table.rankOf); ++stage) {
        open.push_back({Kind::forward, stage, i});
        if (below(random, 2)) {
          open.push_back({Kind::backward, stage, i});
        } else {
          open.push_back({Kind::inputGrad, stage, i});
          open.push_back({Kind::weightGrad, stage, i});
        }
        if (!hasTransfers || !crosses(stage))
          continue;
        open.push_back({Kind::sendForward, stage, i});
        open.push_back({Kind::recvForward, stage + 1, i});
        open.push_back({Kind::sendBackward, stage + 1, i});
        open.push_back({Kind::recvBackward, stage, i});
      }
  }

  bool has(Kind kind, int32_t stage, int32_t i) const {
    return done.contains({kind, stage, i});
  }
  bool hasGradient(int32_t stage, int32_t i) const {
    return has(Kind::backward, stage, i) || has(Kind::inputGrad, stage, i);
  }

  bool isAble(const Action &a) const {
    int32_t s = a.stage, i = a.microbatch;
    bool moved = hasTransfers && crosses(a.kind == Kind::forward ? s - 1 : s);
    bool isLast = s + 1 == std::ssize(table.rankOf);
    switch (a.kind) {
    case Kind::forward:
      return s == 0 || (has(Kind::forward, s - 1, i) &&
                        (!moved || (has(Kind::sendForward, s - 1, i) &&
                                    has(Kind::recvForward, s, i))));
    case Kind::backward:
    case Kind::inputGrad:
      return has(Kind::forward, s, i) &&
             (isLast || (hasGradient(s + 1, i) &&
                         (!moved || (has(Kind::sendBackward, s + 1, i) &&
                                     has(Kind::recvBackward, s, i)))));
    case Kind::weightGrad:
      return has(Kind::inputGrad, s, i);
    case Kind::sendForward:
      return has(Kind::forward, s, i);
    case Kind::sendBackward:
      return hasGradient(s, i);
    default:
      return true;
    }
  }

  void postTogether() {
    for (std::vector<Action> &rank : table.ranks)
      for (size_t i = 0; i + 1 < rank.size(); ++i)
        rank[i].withNext = isTransfer(rank[i].kind) &&
                           isTransfer(rank[i + 1].kind) &&
                           below(random, 4) == 0;
  }

  std::mt19937 &random;
  Table table;
  bool hasTransfers = true;
  std::vector<Action> open;
  std::set<Key> done;
};

} // namespace

Table oneFOneB(int32_t ranks, int32_t microbatches) {
  Table table = emptyTable(ranks, microbatches);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    auto &actions = table.ranks[static_cast<size_t>(rank)];
    int32_t ahead = std::min(ranks - rank - 1, microbatches);
    for (int32_t i = 0; i < microbatches + ahead; ++i) {
      if (i < microbatches)
        actions.push_back({Kind::forward, rank, i});
      if (i >= ahead)
        actions.push_back({Kind::backward, rank, i - ahead});
    }
  }
  return table;
}

Table gpipe(int32_t ranks, int32_t microbatches) {
  Table table = emptyTable(ranks, microbatches);
  for (int32_t rank = 0; rank < ranks; ++rank)
    for (Kind kind : {Kind::forward, Kind::backward})
      for (int32_t i = 0; i < microbatches; ++i)
        table.ranks[static_cast<size_t>(rank)].push_back({kind, rank, i});
  return table;
}

Costs evenCosts(size_t stages, double forward, double inputGrad,
                double weightGrad, double transfer) {
  auto all = [&](double time) { return std::vector<double>(stages, time); };
  return {all(forward), all(inputGrad), all(weightGrad), all(transfer)};
}

Table withTransfers(const Table &table) {
  Table result = table;
  auto crosses = [&](int32_t low) {
    auto stage = static_cast<size_t>(low);
    return low >= 0 && stage + 1 < table.rankOf.size() &&
           table.rankOf[stage] != table.rankOf[stage + 1];
  };
  for (std::vector<Action> &rank : result.ranks) {
    std::vector<Action> actions;
    for (const Action &action : rank) {
      int32_t s = action.stage, i = action.microbatch;
      bool forward = action.kind == Kind::forward;
      bool gradient =
          action.kind == Kind::backward || action.kind == Kind::inputGrad;
      if (forward && crosses(s - 1))
        actions.push_back({Kind::recvForward, s, i});
      if (gradient && crosses(s))
        actions.push_back({Kind::recvBackward, s, i});
      actions.push_back(action);
      if (forward && crosses(s))
        actions.push_back({Kind::sendForward, s, i});
      if (gradient && crosses(s - 1))
        actions.push_back({Kind::sendBackward, s, i});
    }
    rank = actions;
  }
  return result;
}

Table randomTable(std::mt19937 &random) { return RandomRun(random).run(); }

} // namespace meshwork::schedules
