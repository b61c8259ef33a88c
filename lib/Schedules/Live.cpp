#include "lib/Schedules/Live.h"

#include <algorithm>

namespace meshwork::schedules {

size_t endOfGroup(const std::vector<Action> &rank, size_t position) {
  while (position + 1 < rank.size() && rank[position].withNext)
    ++position;
  return position + 1;
}

int32_t LiveCount::ofRank(const std::vector<Action> &rank) {
  int32_t alive = 0, mostAlive = 0;
  for (size_t begin = 0, end; begin < rank.size(); begin = end) {
    end = endOfGroup(rank, begin);
    for (size_t i = begin; i < end; ++i) {
      if (rank[i].kind != Kind::forward)
        continue;
      auto stage = static_cast<size_t>(rank[i].stage);
      most[stage] = std::max(most[stage], ++now[stage]);
      mostAlive = std::max(mostAlive, ++alive);
    }
    for (size_t i = begin; i < end; ++i)
      if (rank[i].kind == Kind::backward || rank[i].kind == Kind::weightGrad)
        --now[static_cast<size_t>(rank[i].stage)], --alive;
  }
  return mostAlive;
}

Kept keptBy(const std::vector<Action> &rank, double stash, double limit) {
  Kept kept{0, rank.size()};
  int64_t whole = 0, stashed = 0; // counted, so that no error adds up
  for (size_t begin = 0, end; begin < rank.size(); begin = end) {
    end = endOfGroup(rank, begin);
    for (size_t i = begin; i < end; ++i) {
      whole += rank[i].kind == Kind::forward;
      double now =
          static_cast<double>(whole) + stash * static_cast<double>(stashed);
      kept.most = std::max(kept.most, now);
      if (now > limit + 1e-9)
        kept.firstAbove = std::min(kept.firstAbove, i);
    }
    for (size_t i = begin; i < end; ++i) {
      bool isInput = rank[i].kind == Kind::inputGrad;
      whole -= isInput || rank[i].kind == Kind::backward;
      stashed += isInput - (rank[i].kind == Kind::weightGrad);
    }
  }
  return kept;
}

} // namespace meshwork::schedules
