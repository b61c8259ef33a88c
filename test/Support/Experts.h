// What the instructions around experts compute, by plain loops: oracles for the
// devices. Plan.fbs says what each is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace meshwork::test {

using Values = std::vector<double>;

inline constexpr double lowest = std::numeric_limits<int32_t>::min(),
                        highest = std::numeric_limits<int32_t>::max();

struct Shape {
  int64_t tokens = 17, k = 2, experts = 5;
  int64_t choices() const { return tokens * k; }
};
inline const Shape shapes[] = {{1, 1, 1},   {1, 2, 2},    {3, 1, 7},
                               {3, 7, 7},   {17, 2, 5},   {17, 5, 5},
                               {17, 8, 64}, {1000, 9, 33}};

/// What tokens choose: k different experts; some choose only the last ones,
/// some none, as padding does.
inline Values choicesOf(const Shape &s) {
  Values choices;
  uint32_t state = 7;
  for (int64_t token = 0; token < s.tokens; ++token) {
    std::vector<double> experts;
    for (int64_t e = 0; e < s.experts; ++e)
      experts.push_back(static_cast<double>(e));
    for (int64_t i = 0; i < s.k; ++i) {
      state = state * 1664525 + 1013904223;
      int64_t left = s.experts - i;
      int64_t drawn = token % 3 == 0 ? left - 1 : (state >> 8) % left;
      choices.push_back(token % 5 == 4 ? -1 : experts[drawn]);
      std::swap(experts[drawn], experts[left - 1]);
    }
  }
  return choices;
}

/// An expert's number, or -1.
inline int64_t expertOf(double choice, double first, int64_t experts) {
  double expert = choice - first;
  return expert >= 0 && expert < static_cast<double>(experts)
             ? static_cast<int64_t>(expert)
             : -1;
}

struct Sorted {
  Values order, tokens, places, begins;
};

/// By a sort.
inline Sorted sortedRows(const Values &choices, int64_t k, double first,
                         int64_t experts, int64_t rows) {
  std::vector<int64_t> chosen;
  auto expert = [&](int64_t c) { return expertOf(choices[c], first, experts); };
  for (size_t c = 0; c < choices.size(); ++c)
    if (expert(c) >= 0)
      chosen.push_back(c);
  std::sort(chosen.begin(), chosen.end(), [&](int64_t a, int64_t b) {
    return expert(a) != expert(b) ? expert(a) < expert(b) : a < b;
  });
  chosen.resize(std::min<size_t>(chosen.size(), rows));
  Sorted sorted{Values(rows, -1), Values(rows, -1), Values(choices.size(), -1),
                Values(experts + 1)};
  for (size_t row = 0; row < chosen.size(); ++row) {
    sorted.order[row] = chosen[row];
    sorted.tokens[row] = chosen[row] / k;
    sorted.places[chosen[row]] = row;
    for (int64_t e = expert(chosen[row]); e < experts; ++e)
      ++sorted.begins[e + 1];
  }
  return sorted;
}

/// For each choice the others of its group are looked at, by their order.
inline Values limited(const Values &choices, int64_t k, int64_t experts,
                      int64_t most, int64_t group) {
  Values kept(choices.size(), -1);
  for (size_t c = 0; c < choices.size(); ++c) {
    int64_t first = static_cast<int64_t>(c) / k / group * group * k, before = 0;
    auto turn = [&](int64_t at) { return std::pair(at % k, at / k); };
    for (int64_t other = first; other < first + group * k; ++other)
      before += choices[other] == choices[c] &&
                turn(other) < turn(static_cast<int64_t>(c));
    if (expertOf(choices[c], 0, experts) >= 0 && before < most)
      kept[c] = choices[c];
  }
  return kept;
}

/// As Plan.fbs says, of `ranks` ranks with two experts each.
struct Assigned {
  Values slots, ranks, places;
  double last = 0;
};
inline Assigned assigned(const Values &choices, int64_t k, int64_t ranks,
                         int64_t slots, int64_t most, int64_t rounds) {
  int64_t tokens = static_cast<int64_t>(choices.size()) / k,
          room = std::min(k, ranks), round = 0;
  Assigned all{Values(rounds * ranks * slots, -1), Values(tokens * room, -1),
               Values(rounds * tokens * room, -1)};
  std::vector<int64_t> taken(ranks), chosen(ranks);
  for (int64_t token = 0; token < tokens; ++token) {
    std::vector<int64_t> goes(ranks); // choices
    for (int64_t i = 0; i < k; ++i)
      if (double choice = choices[token * k + i];
          choice >= 0 && choice < static_cast<double>(2 * ranks))
        ++goes[static_cast<int64_t>(choice) / 2];
    bool fits = true;
    for (int64_t n = 0; n < ranks; ++n) {
      goes[n] = std::min(goes[n], std::min<int64_t>(k, 2));
      fits = fits && (goes[n] == 0 ||
                      (taken[n] < slots && chosen[n] + goes[n] <= most));
    }
    if (!fits)
      ++round, taken.assign(ranks, 0), chosen.assign(ranks, 0);
    for (int64_t n = 0, i = 0; n < ranks; ++n)
      if (goes[n]) {
        int64_t slot = taken[n]++;
        chosen[n] += goes[n];
        all.slots[(round * ranks + n) * slots + slot] =
            static_cast<double>(token);
        all.places[(round * tokens + token) * room + i] =
            static_cast<double>(n * slots + slot);
        all.ranks[token * room + i++] = static_cast<double>(n);
        all.last = static_cast<double>(round);
      }
  }
  return all;
}

/// The rows of each expert as Plan.fbs says them, by begins of any kind.
inline std::vector<std::pair<int64_t, int64_t>> rangesOf(const Values &begins,
                                                         int64_t rows) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  double largest = 0;
  std::vector<int64_t> tops;
  for (double begin : begins) {
    largest = std::max(largest, std::min(begin, static_cast<double>(rows)));
    tops.push_back(static_cast<int64_t>(largest));
  }
  for (size_t e = 0; e + 1 < tops.size(); ++e)
    ranges.emplace_back(tops[e], tops[e + 1]);
  return ranges;
}

/// Experts, each with the value of its row, in the order of experts.
using Leaves = std::vector<std::pair<uint32_t, float>>;

/// As Plan.fbs says it, from the root down.
inline float treeSum(const Leaves &leaves, int bit) {
  if (leaves.size() == 1)
    return leaves[0].second;
  if (bit < 0) { // Equal experts.
    float sum = leaves[0].second;
    for (size_t i = 1; i < leaves.size(); ++i)
      sum += leaves[i].second;
    return sum;
  }
  Leaves low, high;
  for (const auto &leaf : leaves)
    (leaf.first >> bit & 1 ? high : low).push_back(leaf);
  if (low.empty() || high.empty())
    return treeSum(low.empty() ? high : low, bit - 1);
  return treeSum(low, bit - 1) + treeSum(high, bit - 1);
}

} // namespace meshwork::test
