#include "passes/partition/Ring.h"

#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace meshwork::partition {
using namespace sharding;

Ring::Ring(const Mesh &mesh, const Axes &axes, int64_t size, bool causal,
           int64_t window)
    : causal(causal), window(window) {
  for (int64_t i = 0, n = mesh.numRanks(axes); i < n; ++i)
    held.push_back(rangesOf(mesh, size, axes, mesh.withIndex(0, axes, i)));
  findStops();
  follow();
}

void Ring::findStops() {
  for (int64_t distance = 1; distance < ranks(); ++distance)
    if (llvm::any_of(llvm::seq(ranks()),
                     [&](int64_t rank) { return sees(rank, distance); }))
      stops.push_back(distance);
}

void Ring::follow() {
  needed.assign(stops.size(), OfRank(ranks()));
  summed = needed;
  for (size_t stop = 1; stop < stops.size(); ++stop)
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      bool meets = sees(rank, stops[stop]);
      needed[stop][rank] = meets;
      summed[stop][rank] =
          meets ||
          summed[stop - 1][behind(rank, stops[stop - 1] - stops[stop])];
    }
  for (size_t stop = stops.size() - 1; stop > 1; --stop)
    for (int64_t rank = 0; rank < ranks() && !comeFromHome(stop); ++rank)
      if (needed[stop][rank])
        needed[stop - 1][behind(rank, -1)] = true;
}

int64_t Ring::behind(int64_t rank, int64_t distance) const {
  return (rank + distance + ranks()) % ranks();
}

bool Ring::sees(int64_t rank, int64_t distance) const {
  auto meet = [&](const layout::Range &queries, const layout::Range &keys) {
    if (queries.count == 0 || keys.count == 0)
      return false;
    bool isPast = keys.begin < queries.begin + queries.count;
    bool isNear = queries.begin - (keys.begin + keys.count - 1) < window;
    return (!causal || isPast) && (window == 0 || isNear);
  };
  return llvm::any_of(held[rank], [&](const layout::Range &queries) {
    return llvm::any_of(
        held[behind(rank, -distance)],
        [&](const layout::Range &keys) { return meet(queries, keys); });
  });
}

std::vector<int64_t> Ring::keySources(size_t stop) const {
  int64_t before = comeFromHome(stop) ? 0 : stops[stop - 1];
  std::vector<int64_t> sources;
  for (int64_t rank = 0; rank < ranks(); ++rank)
    sources.push_back(needed[stop][rank] ? behind(rank, before - stops[stop])
                                         : -1);
  return sources;
}

std::vector<int64_t> Ring::sumSources(size_t stop) const {
  std::vector<int64_t> sources;
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    int64_t from = behind(rank, stops[stop - 1] - stops[stop]);
    sources.push_back(summed[stop - 1][from] ? from : -1);
  }
  return sources;
}

std::vector<int64_t> Ring::homeSources() const {
  std::vector<int64_t> sources;
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    int64_t from = behind(rank, stops.back());
    sources.push_back(summed.back()[from] ? from : -1);
  }
  return sources;
}

} // namespace meshwork::partition
