#include "lib/Schedules/Live.h"

#include <algorithm>

namespace meshwork::schedules {

size_t endOfGroup(const std::vector<Action> &rank, size_t position) {
  while (position + 1 < rank.size() && rank[position].withNext)
    ++position;
  return position + 1;
}

int32_t LiveCount::ofRank(const std::vector<Action> &rank, double limit,
                          size_t &firstAbove) {
  int32_t alive = 0, mostAlive = 0;
  firstAbove = rank.size();
  for (size_t begin = 0, end; begin < rank.size(); begin = end) {
    end = endOfGroup(rank, begin);
    for (size_t i = begin; i < end; ++i) {
      if (rank[i].kind != Kind::forward)
        continue;
      auto stage = static_cast<size_t>(rank[i].stage);
      most[stage] = std::max(most[stage], ++now[stage]);
      mostAlive = std::max(mostAlive, ++alive);
      if (alive > limit)
        firstAbove = std::min(firstAbove, i);
    }
    for (size_t i = begin; i < end; ++i)
      if (rank[i].kind == Kind::backward || rank[i].kind == Kind::weightGrad)
        --now[static_cast<size_t>(rank[i].stage)], --alive;
  }
  return mostAlive;
}

} // namespace meshwork::schedules
