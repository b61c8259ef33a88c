#include "lib/Schedules/Copies.h"

#include "lib/Schedules/Live.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>

namespace meshwork::schedules {
namespace {

/// The buffers of one kind and stage, one for each microbatch.
using Lives = std::vector<Reuse>;

constexpr size_t numKinds = 6;

/// What a microbatch's buffers are taken and released by.
std::array<Reuse, numKinds> livesOf(const Index &index, int32_t stage,
                                    int32_t microbatch) {
  auto find = [&](Kind kind) { return index.find(kind, stage, microbatch); };
  uint32_t forward = find(Kind::forward);
  uint32_t gradient = index.findGradient(stage, microbatch);
  return {{{forward, find(Kind::recvForward)},
           {find(Kind::sendForward), forward},
           {gradient, find(Kind::recvBackward)},
           {find(Kind::sendBackward), gradient},
           {index.findLast(stage, microbatch), forward},
           {find(Kind::weightGrad), find(Kind::inputGrad)}}};
}

/// Where lives end, the first on top.
using Releases =
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>;

size_t mostAlive(const Lives &lives, const std::vector<uint32_t> &endOf) {
  Releases alive;
  size_t most = 0;
  for (const Reuse &life : lives) {
    while (!alive.empty() && endOf[alive.top()] <= life.take)
      alive.pop();
    alive.push(life.release);
    most = std::max(most, alive.size());
  }
  return most;
}

void reuse(Lives &lives, size_t copies, const std::vector<uint32_t> &endOf,
           std::vector<Reuse> &all) {
  std::sort(lives.begin(), lives.end(),
            [](const Reuse &a, const Reuse &b) { return a.take < b.take; });
  if (copies == 0)
    copies = mostAlive(lives, endOf);
  Releases taken;
  for (const Reuse &life : lives) {
    if (taken.size() == copies) {
      all.push_back({taken.top(), life.take});
      taken.pop();
    }
    taken.push(life.release);
  }
}

/// For each action, the one after the last that starts together with it.
std::vector<uint32_t> endsOfGroups(const Table &table, const Index &index) {
  std::vector<uint32_t> ends;
  ends.reserve(index.size());
  for (size_t rank = 0; rank < table.ranks.size(); ++rank)
    for (size_t i = 0; i < table.ranks[rank].size();) {
      size_t end = endOfGroup(table.ranks[rank], i);
      ends.insert(ends.end(), end - i, index.number(rank, end));
      i = end;
    }
  return ends;
}

} // namespace

std::vector<Reuse> reusedCopies(const Table &table, const Index &index,
                                int32_t copies) {
  std::vector<uint32_t> endOf = endsOfGroups(table, index);
  std::vector<Reuse> all;
  for (int32_t stage = 0; stage < static_cast<int64_t>(table.rankOf.size());
       ++stage) {
    std::array<Lives, numKinds> lives;
    for (int32_t i = 0; i < table.microbatches; ++i) {
      std::array<Reuse, numKinds> one = livesOf(index, stage, i);
      for (size_t kind = 0; kind < numKinds; ++kind)
        if (one[kind].take != Index::none && one[kind].release != Index::none)
          lives[kind].push_back(one[kind]);
    }
    for (Lives &kind : lives)
      reuse(kind, static_cast<size_t>(copies), endOf, all);
  }
  return all;
}

} // namespace meshwork::schedules
