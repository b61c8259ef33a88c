// The vectorized random words are those of the library, and keep the share of
// elements they should.
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "runtime/device/cpu/AttentionKernels.h"
#include "runtime/device/cpu/Philox.h"

namespace meshwork::runtime::cpu {
namespace {

/// Which of `columns` elements from `firstIndex` on softmax keeps.
std::vector<bool> keptBySoftmax(const BlockDropout &dropout, int64_t columns) {
  std::vector<float> scores(columns), out(1);
  float max = -1e30f, sum = 0;
  ScoreBlock block;
  block.rows = 1;
  block.columns = block.ld = columns;
  block.scores = scores.data();
  block.probabilities = scores.data();
  QueryRow query{0, 0, columns};
  block.queries = &query;
  block.dropout = dropout;
  std::vector<int32_t> keys(columns);
  std::iota(keys.begin(), keys.end(), 0);
  block.dropout.keys = keys.data();
  attentionKernels().softmaxF32(block, {&max, &sum, out.data(), 1});
  std::vector<bool> kept;
  for (float p : scores)
    kept.push_back(p != 0);
  return kept;
}

TEST(Philox, KnownAnswer) {
  // Philox4x32-10 of all ones, from the generator's published test vectors.
  r123::Philox4x32::ctr_type counter = {
      {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}};
  r123::Philox4x32::key_type key = {{0xffffffffu, 0xffffffffu}};
  EXPECT_EQ(r123::Philox4x32()(counter, key)[0], 0x408f276du);
}

TEST(Philox, VectorsMatchTheLibrary) {
  // Counters that carry from the low word to the high one are the hard case.
  for (uint64_t first : {uint64_t{0}, uint64_t{0xfffffff8}, uint64_t{1} << 40,
                         (uint64_t{7} << 32) - 17}) {
    BlockDropout dropout;
    dropout.active = true;
    dropout.random = {123, 0xdeadbeef, 9};
    dropout.threshold = 0x80000000u;
    dropout.firstIndex = first;
    std::vector<bool> kept = keptBySoftmax(dropout, 64);
    for (int64_t i = 0; i < 64; ++i)
      EXPECT_EQ(kept[i], philoxWord(dropout.random, first + i) >= 0x80000000u);
  }
}

TEST(Philox, KeepsTheWantedShare) {
  BlockDropout dropout;
  dropout.active = true;
  dropout.random = {1, 2, 3};
  for (double rate : {0.1, 0.5, 0.9}) {
    dropout.threshold = static_cast<uint32_t>(rate * 4294967296.0);
    constexpr int64_t count = 1 << 20;
    int64_t kept = 0;
    for (bool one : keptBySoftmax(dropout, count))
      kept += one;
    // Five standard deviations of a binomial count.
    double deviation = std::sqrt(count * rate * (1 - rate));
    EXPECT_NEAR(kept, count * (1 - rate), 5 * deviation);
  }
}

} // namespace
} // namespace meshwork::runtime::cpu
