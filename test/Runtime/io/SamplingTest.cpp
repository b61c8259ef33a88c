// Which window a sample is: each once an epoch, shares in each block, none that
// leaves its file.
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/io/Sampling.h"

namespace meshwork::runtime {
namespace {
using testing::HasSubstr;

Sampling made(SamplingOptions options) {
  auto sampling = Sampling::make(options);
  EXPECT_TRUE(sampling.ok()) << sampling.status();
  return *sampling;
}

using Place = std::pair<size_t, uint64_t>; // file, start

Place placeOf(const Sampling &sampling, uint64_t ofRun, uint64_t seed = 3) {
  Window window =
      sampling.of(seed, {ofRun / 8, static_cast<uint32_t>(ofRun % 8), ofRun});
  return {window.file, window.start};
}

TEST(Sampling, AnEpochHasEachWindowOnce) {
  // Sizes around powers of two and of four, and files with one window.
  for (uint64_t last : {11, 12, 21, 170, 650, 2561, 5130, 10250}) {
    Sampling sampling = made({{{11, 30}, {last}}, 10, SampleOrder::epochs});
    uint64_t windows = 1 + 2 + (last - 1) / 10;
    std::set<std::vector<Place>> epochs;
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<Place> places;
      std::vector<Place> order;
      for (uint64_t n = 0; n < windows; ++n) {
        Place place = placeOf(sampling, epoch * windows + n);
        EXPECT_EQ(place.second % 10, 0u);
        uint64_t tokens = std::vector<uint64_t>{11, 30, last}[place.first];
        EXPECT_LT(place.second + 10, tokens);
        places.insert(place);
        order.push_back(place);
      }
      EXPECT_EQ(places.size(), windows);
      epochs.insert(order);
    }
    if (windows > 9)
      EXPECT_EQ(epochs.size(), 3u) << "epochs have one order";
  }
}

TEST(Sampling, AsTheyStand) {
  // The second file has no window.
  Sampling sampling = made({{{21, 1}, {15}}, 10, SampleOrder::asTheyStand});
  std::vector<Place> expected = {{0, 0}, {0, 10}, {2, 0}, {0, 0}};
  for (uint64_t n = 0; n < expected.size(); ++n)
    for (uint64_t seed : {3, 4})
      EXPECT_EQ(placeOf(sampling, n, seed), expected[n]);
}

TEST(Sampling, RandomPlacesAreOfAllFiles) {
  Sampling sampling = made({{{11, 14}, {20}}, 10});
  std::map<Place, int> found;
  for (uint64_t n = 0; n < 3000; ++n)
    ++found[placeOf(sampling, n)];
  EXPECT_EQ(found.size(), 15u); // 1, 4 and 10
  for (const auto &[place, count] : found)
    EXPECT_NEAR(count, 200, 80) << place.first; // more than five deviations
}

TEST(Sampling, BlocksHaveTheirShares) {
  for (SampleOrder order : {SampleOrder::random, SampleOrder::epochs}) {
    Sampling sampling =
        made({{{5000}, {900, 40}, {64}}, 8, order, {0.7, 0.2, 0.1}});
    for (uint64_t block = 0; block < 3; ++block) {
      std::map<size_t, int> counts;
      for (uint64_t n = 0; n < samplesOfBlock; ++n)
        ++counts[placeOf(sampling, block * samplesOfBlock + n).first];
      EXPECT_EQ(counts[0], 717); // 716.8, 204.8 and 102.4
      EXPECT_EQ(counts[1] + counts[2], 205);
      EXPECT_EQ(counts[3], 102);
    }
  }
}

TEST(Sampling, ASourceHasEpochsOfItsOwn) {
  Sampling sampling = made({{{81}, {41}}, 8, SampleOrder::epochs, {3, 1}});
  std::map<Place, int> found;
  for (uint64_t n = 0; n < 5 * samplesOfBlock; ++n)
    ++found[placeOf(sampling, n)];
  ASSERT_EQ(found.size(), 15u);
  for (const auto &[place, count] : found) // 3840 of 10 windows, 1280 of 5
    EXPECT_EQ(count, place.first == 0 ? 384 : 256);
  EXPECT_DOUBLE_EQ(sampling.readsOf(0, 5 * samplesOfBlock), 384);
  EXPECT_DOUBLE_EQ(sampling.readsOf(1, 5 * samplesOfBlock), 256);
}

TEST(Sampling, SeedsDiffer) {
  Sampling sampling = made({{{1001}}, 10, SampleOrder::epochs});
  std::vector<Place> one, other;
  for (uint64_t n = 0; n < 100; ++n) {
    one.push_back(placeOf(sampling, n, 1));
    other.push_back(placeOf(sampling, n, uint64_t{1} << 32 | 1));
  }
  EXPECT_NE(one, other);
}

TEST(Sampling, LargestFiles) {
  uint64_t tokens = uint64_t{1} << 60;
  Sampling sampling = made({{{tokens, tokens}}, 1, SampleOrder::epochs});
  for (uint64_t n : {uint64_t{0}, uint64_t{1} << 50, tokens})
    EXPECT_LT(placeOf(sampling, n).second, tokens - 1);
}

TEST(Sampling, RefusesSharesThatGiveNothing) {
  auto messageOf = [](std::vector<double> weights) {
    auto made = Sampling::make({{{50}, {50}}, 8, SampleOrder::random, weights});
    return std::string(made.status().message());
  };
  EXPECT_THAT(messageOf({1}), HasSubstr("has 1 numbers, expected 2"));
  EXPECT_THAT(messageOf({1, 0}),
              HasSubstr("found 0, expected numbers above 0"));
  EXPECT_THAT(messageOf({1, -1}), HasSubstr("found -1"));
  EXPECT_THAT(messageOf({1, std::nan("")}), HasSubstr("found nan"));
  EXPECT_THAT(messageOf({1, HUGE_VAL}), HasSubstr("found inf"));
  EXPECT_THAT(
      messageOf({1, 1e-9}),
      HasSubstr("found 1e-09 for --data number 2, which is no sample of "
                "1024"));
  EXPECT_EQ(messageOf({1e308, 1e308}), "");
  EXPECT_EQ(messageOf({1e-300, 1e-300}), "");
}

} // namespace
} // namespace meshwork::runtime
