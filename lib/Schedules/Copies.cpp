#include "lib/Schedules/Copies.h"

#include "lib/Plan/CopyPool.h"
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

/// The copies of one kind and stage, while a rank's order is walked.
class Handout {
public:
  Handout(uint32_t copies, const std::vector<uint32_t> &endOf)
      : free(copies), endOf(endOf) {}

  void add(const Reuse &life, std::vector<Reuse> &all) {
    while (!held.empty() && endOf[held.top().release] <= life.take)
      giveBackFirst();
    if (free.isEmpty()) // Whoever gives one back stands later: this hangs.
      giveBackFirst();
    uint32_t copy = free.take();
    if (copy < last.size())
      all.push_back({last[copy], life.take});
    last.resize(std::max<size_t>(last.size(), copy + 1));
    last[copy] = life.release;
    held.push({life.release, copy});
  }

private:
  struct Held {
    uint32_t release, copy;
    bool operator>(const Held &other) const { return release > other.release; }
  };

  void giveBackFirst() {
    free.giveBack(held.top().copy);
    held.pop();
  }

  plan::CopyPool free;
  const std::vector<uint32_t> &endOf;
  /// Where lives end, the first on top.
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held;
  std::vector<uint32_t> last; // by copy: the release by who had it last
};

void reuse(Lives &lives, uint32_t copies, const std::vector<uint32_t> &endOf,
           std::vector<Reuse> &all) {
  std::sort(lives.begin(), lives.end(),
            [](const Reuse &a, const Reuse &b) { return a.take < b.take; });
  // Without a limit no more are taken than are alive at once.
  Handout handout(copies == 0 ? UINT32_MAX : copies, endOf);
  for (const Reuse &life : lives)
    handout.add(life, all);
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
      reuse(kind, static_cast<uint32_t>(copies), endOf, all);
  }
  return all;
}

} // namespace meshwork::schedules
