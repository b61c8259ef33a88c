#include "runtime/io/Sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <Random123/philox.h>
#include <absl/strings/str_cat.h>

namespace meshwork::runtime {
namespace {
// What random words are for: "tokn", "epoc", "mixt".
constexpr uint32_t ofPlaces = 0x6e6b6f74, ofEpochs = 0x636f7065,
                   ofBlocks = 0x7478696d;
constexpr uint32_t rounds = 6;

philox4x32_ctr_t wordsOf(philox4x32_ctr_t counter, uint64_t seed) {
  philox4x32_key_t key = {
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}};
  return philox4x32_R(10, counter, key);
}

/// Which permutation of numbers.
struct Shuffle {
  uint64_t seed;
  uint32_t of;     // ofEpochs, ofBlocks
  uint32_t pool;   // of several
  uint64_t number; // of the epoch or block
};

/// Where `place` of `count` goes: a Feistel network over the next power of
/// four, walked until a number is below `count` (Black and Rogaway, CT-RSA
/// 2002).
uint64_t shuffled(uint64_t place, uint64_t count, const Shuffle &by) {
  int half = std::max((static_cast<int>(std::bit_width(count - 1)) + 1) / 2, 1);
  uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = place >> half, right = place & mask;
    for (uint32_t round = 0; round < rounds; ++round) {
      uint64_t word =
          wordsOf({{static_cast<uint32_t>(right), by.pool << 8 | round,
                    static_cast<uint32_t>(by.number), by.of}},
                  by.seed)
              .v[0];
      left = std::exchange(right, left ^ (word & mask));
    }
    place = left << half | right;
  } while (place >= count);
  return place;
}

/// Any of `places`, by the sample's number in its step.
uint64_t drawn(uint64_t places, uint64_t seed, const SampleNumber &number) {
  philox4x32_ctr_t words = wordsOf(
      {{static_cast<uint32_t>(number.step),
        static_cast<uint32_t>(number.step >> 32), number.index, ofPlaces}},
      seed);
  uint64_t fraction = words.v[0] | uint64_t{words.v[1]} << 32;
  return static_cast<uint64_t>(
      static_cast<unsigned __int128>(fraction) * places >> 64);
}

absl::Status checkWeights(const std::vector<double> &weights, size_t sources) {
  if (weights.size() != sources)
    return absl::InvalidArgumentError(
        absl::StrCat("has ", weights.size(), " numbers, expected ", sources,
                     ", one for each --data"));
  for (double weight : weights)
    if (!std::isfinite(weight) || weight <= 0)
      return absl::InvalidArgumentError(
          absl::StrCat("found ", weight, ", expected numbers above 0"));
  return absl::OkStatus();
}

/// Of a block: what each is due, rounded down, and one more for those that lose
/// most by it.
std::vector<uint64_t> quotas(const std::vector<double> &weights) {
  // Scaled first: the sum of the largest numbers is none.
  double largest = *std::max_element(weights.begin(), weights.end()), sum = 0;
  for (double weight : weights)
    sum += weight / largest;
  std::vector<uint64_t> counts;
  std::vector<double> lost;
  for (double weight : weights) {
    double due = weight / largest / sum * static_cast<double>(samplesOfBlock);
    counts.push_back(static_cast<uint64_t>(due));
    lost.push_back(due - std::floor(due));
  }
  uint64_t given = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  for (; given < samplesOfBlock; ++given) {
    auto most = std::max_element(lost.begin(), lost.end());
    ++counts[static_cast<size_t>(most - lost.begin())];
    *most = -1;
  }
  return counts;
}
} // namespace

Sampling::Pool Sampling::poolOf(const SamplingOptions &options,
                                size_t source) const {
  Pool pool;
  for (size_t s = 0; s < source; ++s)
    pool.firstFile += options.tokens[s].size();
  uint64_t end = 0;
  for (uint64_t tokens : options.tokens[source])
    pool.ends.push_back(end += order == SampleOrder::random
                                   ? tokens - sequence
                                   : (tokens - 1) / sequence);
  return pool;
}

/// All files as those of one source.
static SamplingOptions joined(SamplingOptions options) {
  std::vector<uint64_t> all;
  for (const std::vector<uint64_t> &files : options.tokens)
    all.insert(all.end(), files.begin(), files.end());
  options.tokens = {all};
  return options;
}

absl::StatusOr<Sampling> Sampling::make(const SamplingOptions &options) {
  Sampling made;
  made.sequence = options.sequence;
  made.order = options.order;
  for (const std::vector<uint64_t> &files : options.tokens) {
    made.windows.push_back(0);
    for (uint64_t tokens : files)
      made.windows.back() += (tokens - 1) / options.sequence;
  }
  if (options.weights.empty()) {
    made.pools.push_back(made.poolOf(joined(options), 0));
    return made;
  }
  if (absl::Status status =
          checkWeights(options.weights, options.tokens.size());
      !status.ok())
    return status;
  for (size_t source = 0; source < options.tokens.size(); ++source)
    made.pools.push_back(made.poolOf(options, source));
  if (absl::Status status = made.shareBlock(options.weights); !status.ok())
    return status;
  return made;
}

absl::Status Sampling::shareBlock(const std::vector<double> &weights) {
  std::vector<uint64_t> counts = quotas(weights);
  uint64_t first = 0;
  for (size_t i = 0; i < pools.size(); ++i) {
    if (counts[i] == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("found ", weights[i], " for --data number ", i + 1,
                       ", which is no sample of ", samplesOfBlock,
                       ": leave that source out, or give it more"));
    pools[i].quota = counts[i];
    pools[i].firstSlot = first;
    first += counts[i];
  }
  return absl::OkStatus();
}

Window Sampling::windowAt(const Pool &pool, uint64_t place) const {
  auto end = std::upper_bound(pool.ends.begin(), pool.ends.end(), place);
  uint64_t first = end == pool.ends.begin() ? 0 : *(end - 1);
  uint64_t step = order == SampleOrder::random ? 1 : sequence;
  return {pool.firstFile + static_cast<size_t>(end - pool.ends.begin()),
          (place - first) * step};
}

Window Sampling::of(uint64_t seed, const SampleNumber &number) const {
  uint64_t block = number.ofRun / samplesOfBlock, counter = number.ofRun;
  size_t pool = 0;
  if (pools.size() > 1) {
    uint64_t slot = shuffled(number.ofRun % samplesOfBlock, samplesOfBlock,
                             {seed, ofBlocks, 0, block});
    while (slot >= pools[pool].firstSlot + pools[pool].quota)
      ++pool;
    counter = block * pools[pool].quota + slot - pools[pool].firstSlot;
  }
  const Pool &from = pools[pool];
  if (order == SampleOrder::random)
    return windowAt(from, drawn(from.places(), seed, number));
  if (order == SampleOrder::asTheyStand)
    return windowAt(from, counter % from.places());
  uint64_t epoch = counter / from.places();
  return windowAt(
      from, shuffled(counter % from.places(), from.places(),
                     {seed, ofEpochs, static_cast<uint32_t>(pool), epoch}));
}

uint64_t Sampling::windowsOf(size_t source) const { return windows[source]; }

double Sampling::readsOf(size_t source, uint64_t samples) const {
  auto count = static_cast<double>(samples);
  if (pools.size() == 1)
    return count / static_cast<double>(std::accumulate(
                       windows.begin(), windows.end(), uint64_t{0}));
  return count * static_cast<double>(pools[source].quota) /
         static_cast<double>(samplesOfBlock) /
         static_cast<double>(windows[source]);
}

} // namespace meshwork::runtime
