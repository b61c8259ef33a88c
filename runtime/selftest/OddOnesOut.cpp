#include "runtime/selftest/OddOnesOut.h"
#include "absl/strings/str_format.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
// Rounds of a measurement differ by a fifth or so, and one delay by several
// times; what is broken is slower than that.
constexpr double slowLink = 0.5, lateLink = 10, slowRank = 0.7;
constexpr double anyLatency = 20e-6; // below it a scheduler decides

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.empty() ? 0 : *middle;
}
} // namespace

std::vector<std::string> slowLinks(const std::vector<PairLink> &links,
                                   const std::string &between) {
  std::vector<double> bandwidths, latencies;
  for (const PairLink &one : links) {
    bandwidths.push_back(one.bandwidth);
    latencies.push_back(one.latency);
  }
  std::vector<std::string> odd;
  if (links.size() < 3)
    return odd;
  double usual = median(bandwidths), usualLatency = median(latencies);
  for (const PairLink &one : links)
    if (one.bandwidth < slowLink * usual)
      odd.push_back(absl::StrFormat(
          "ranks %d and %d, on %s: %.3g GB/s, the median of such pairs is %.3g",
          one.from, one.to, between, one.bandwidth / 1e9, usual / 1e9));
    else if (one.latency > lateLink * usualLatency + anyLatency)
      odd.push_back(absl::StrFormat(
          "ranks %d and %d, on %s: a small message takes %.3g us, the median "
          "of such pairs is %.3g",
          one.from, one.to, between, one.latency * 1e6, usualLatency * 1e6));
  return odd;
}

std::vector<std::string> slowRanks(const std::vector<double> &rates,
                                   const std::string &what) {
  std::vector<std::string> odd;
  double usual = median(rates);
  for (size_t rank = 0; rank < rates.size(); ++rank)
    if (rates[rank] < slowRank * usual)
      odd.push_back(absl::StrFormat(
          "rank %d: %s run at %.0f %% of the median rank's rate", rank, what,
          100 * rates[rank] / usual));
  return odd;
}

} // namespace meshwork::runtime
