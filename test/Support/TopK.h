// What TopK chooses, by sorting: an oracle for the devices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace meshwork::test {

struct TopKCase {
  int64_t rows, experts, k, groups = 1, kept = 1;
  bool addsTwo = false;
};

/// Numbers of `among`, best first: a NaN, then by value, then by number.
inline std::vector<int32_t> sortedBy(std::vector<int32_t> among,
                                     const std::vector<float> &scores) {
  std::sort(among.begin(), among.end(), [&](int32_t a, int32_t b) {
    bool isNan = std::isnan(scores[a]), isOtherNan = std::isnan(scores[b]);
    if (isNan != isOtherNan)
      return isNan;
    return isNan || scores[a] == scores[b] ? a < b : scores[a] > scores[b];
  });
  return among;
}

inline std::vector<int32_t> countedFrom(int64_t first, int64_t count) {
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), static_cast<int32_t>(first));
  return numbers;
}

/// Of one row.
inline std::vector<int32_t> choicesOf(const TopKCase &c,
                                      const std::vector<float> &scores) {
  int64_t size = c.experts / c.groups;
  std::vector<float> ofGroups;
  for (int64_t group = 0; group < c.groups; ++group) {
    auto best = sortedBy(countedFrom(group * size, size), scores);
    ofGroups.push_back(c.addsTwo ? scores[best[0]] + scores[best[1]]
                                 : scores[best[0]]);
  }
  auto kept = sortedBy(countedFrom(0, c.groups), ofGroups);
  kept.resize(c.kept);
  std::sort(kept.begin(), kept.end());
  std::vector<int32_t> among;
  for (int32_t group : kept)
    for (int32_t number : countedFrom(group * size, size))
      among.push_back(number);
  among = sortedBy(among, scores);
  among.resize(c.k);
  return among;
}

/// Few values, so that many are equal; now and then a zero of either sign, an
/// infinity, a NaN, the smallest number.
inline std::vector<float> tiedScores(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> scores(count);
  const float rare[] = {0.0f,      -0.0f,         INFINITY,
                        -INFINITY, std::nanf(""), 1e-45f};
  for (float &score : scores)
    score = random() % 8 ? static_cast<float>(random() % 7) / 4 - 1
                         : rare[random() % 6];
  return scores;
}

inline const TopKCase topKCases[] = {
    {5, 1, 1},
    {7, 8, 2},
    {3, 33, 33},
    {4, 100, 7},
    {9, 8, 3, 4, 2},
    {5, 8, 4, 4, 2, true},
    {2, 256, 8, 8, 4, true},
    {3, 120, 6, 40, 3},
    {2, 96, 5, 48, 48, true},
};

} // namespace meshwork::test
