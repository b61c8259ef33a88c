#include "tools/meshwork/driver/search/LayerMemory.h"

#include <algorithm>
#include <cmath>

namespace meshwork::driver {
namespace {

using Entry = std::map<int64_t, uint64_t>::const_iterator;

double slope(Entry from, Entry to) {
  return (static_cast<double>(to->second) - static_cast<double>(from->second)) /
         static_cast<double>(to->first - from->first);
}

/// Of the two numbers of layers around `near`, or else the two next to it.
std::optional<double> slopeAt(const std::map<int64_t, uint64_t> &bytes,
                              int64_t near) {
  if (bytes.size() < 2)
    return std::nullopt;
  auto to = std::clamp(near, std::next(bytes.begin())->first,
                       std::prev(bytes.end())->first);
  Entry upper = bytes.lower_bound(to);
  return slope(std::prev(upper), upper);
}

size_t distance(size_t a, size_t b) { return a > b ? a - b : b - a; }
} // namespace

void LayerMemory::add(const std::vector<int64_t> &layersOfRank,
                      const std::vector<uint64_t> &bytes) {
  for (size_t rank = 0; rank < known.size(); ++rank)
    known[rank][layersOfRank[rank]] = bytes[rank];
}

/// Its own, or that of the nearest rank that has one.
std::optional<double> LayerMemory::bytesOfLayer(size_t rank,
                                                int64_t near) const {
  if (std::optional<double> own = slopeAt(known[rank], near))
    return own;
  std::optional<size_t> lender;
  for (size_t other = 0; other < known.size(); ++other)
    if (known[other].size() > 1 &&
        (!lender || distance(other, rank) < distance(*lender, rank)))
      lender = other;
  return lender ? slopeAt(known[*lender], near) : std::nullopt;
}

int64_t LayerMemory::mostWithin(uint64_t limit, size_t rank) const {
  // More layers need more: `above` and all beyond it do not fit.
  const Bytes &bytes = known[rank];
  auto above = std::find_if(bytes.begin(), bytes.end(),
                            [&](auto &one) { return one.second > limit; });
  int64_t most = above == bytes.end() ? layers : above->first - 1;
  bool fits = above != bytes.begin();
  auto nearest = fits ? std::prev(above) : above;
  std::optional<double> each = bytesOfLayer(rank, nearest->first + 1);
  if (fits && !each)
    return most;
  // Without anything else than layers a rank would need less than it does.
  if (!each)
    each = static_cast<double>(nearest->second) /
           static_cast<double>(nearest->first);
  double room =
             static_cast<double>(limit) - static_cast<double>(nearest->second),
         more = std::floor(room / std::max(*each, 1.0)),
         furthest = static_cast<double>(layers);
  int64_t reach = nearest->first +
                  static_cast<int64_t>(std::clamp(more, -furthest, furthest));
  return std::min(most, std::max(reach, fits ? nearest->first : int64_t{1}));
}

std::vector<int64_t> LayerMemory::mostWithin(uint64_t limit) const {
  std::vector<int64_t> most;
  for (size_t rank = 0; rank < known.size(); ++rank)
    most.push_back(mostWithin(limit, rank));
  return most;
}

} // namespace meshwork::driver
