// dropout_mask against an independent Philox4x32-10 (Salmon et al., SC'11).
#include "Harness.h"
#include "passes/interpreter/Evaluate.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

using namespace meshwork::interpreter;

namespace {

/// First word, from the paper's definition: ten rounds of two multiplications.
uint32_t philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t{0xD2511F53} * counter[0],
             second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(first)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter[0];
}

TEST(Random, KnownAnswers) {
  // From the vectors that come with Random123: all zeros, all ones.
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), 0x6627e8d5u);
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), 0x408f276du);
}

TEST(Random, MaskIsPhiloxOfSeedStreamStepAndIndex) {
  double rate = 0.4;
  int dropped = 0;
  for (uint32_t seed : {0u, 7u, 0xffffffffu})
    for (uint32_t stream : {0u, 0x89abcdefu})
      for (uint32_t step : {0u, 1u, 0x80000000u})
        for (uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{5} << 32,
                               (uint64_t{1} << 40) + 3}) {
          uint32_t word = philox({static_cast<uint32_t>(index),
                                  static_cast<uint32_t>(index >> 32), step, 0},
                                 {seed, stream});
          // Step inputs are i32: large ones arrive as negative numbers.
          RandomInputs random{static_cast<double>(static_cast<int32_t>(seed)),
                              static_cast<double>(static_cast<int32_t>(step)),
                              0};
          double expected =
              word >= 0.4 * 4294967296.0 ? static_cast<float>(1 / 0.6) : 0;
          EXPECT_DOUBLE_EQ(dropoutFactor(random, stream, rate, index),
                           expected);
          dropped += expected == 0;
        }
  EXPECT_GT(dropped, 10);
  EXPECT_LT(dropped, 62);
}

/// The word is compared with rate * 2^32, no more and no less.
TEST(Random, KeepsAtTheThreshold) {
  double at = 0x6627e8d5u / 4294967296.0,
         above = (0x6627e8d5u + 1) / 4294967296.0;
  EXPECT_GT(dropoutFactor({0, 0, 0}, 0, at, 0), 1);
  EXPECT_EQ(dropoutFactor({0, 0, 0}, 0, above, 0), 0);
}

/// Index is row-major in the iteration space, samples counted from the first.
TEST(Random, MaskCountsSamplesFromTheFirst) {
  Program program(R"(
    func.func @f(%s: tensor<i32>, %t: tensor<i32>, %n: tensor<i32>) -> tensor<2x3x4xf32, #bse> {
      %0 = transformer.map ins(%s, %t, %n : tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x4xf32, #bse> {
      ^bb0(%x: i32, %y: i32, %z: i32):
        %m = transformer.dropout_mask %x, %y, %z stream 9 rate 5.0e-1
        transformer.yield %m : f32
      }
      return %0 : tensor<2x3x4xf32, #bse>
    })");
  Tensor mask = program.run(
      {Tensor::scalar(3), Tensor::scalar(4), Tensor::scalar(10)})[0];
  for (int64_t i = 0; i < mask.size(); ++i) {
    uint32_t word =
        philox({static_cast<uint32_t>(10 * 12 + i), 0, 4, 0}, {3, 9});
    EXPECT_EQ(mask[i], word >= 0x80000000u ? 2 : 0) << i;
  }
}

float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Both neighbours and nothing else, the upper one as often as the distance
/// says. Over n draws the share's deviation is sqrt(p (1 - p) / n). One draw in
/// 10^9 exceeds six deviations.
TEST(Random, RoundsToBothNeighboursWithoutBias) {
  constexpr int draws = 40000;
  for (uint32_t high : {0x3f800000u, 0xbf800000u, 0x00010000u, 0x7f7e0000u,
                        0x3fff0000u /* the upper one has the next exponent */})
    for (uint32_t low : {0x0001u, 0x2000u, 0x8000u, 0xc123u, 0xffffu}) {
      double down = fromBits(high), up = fromBits(high + 0x10000);
      int ups = 0;
      for (int i = 0; i < draws; ++i) {
        double rounded =
            stochasticallyRounded(fromBits(high | low), {5, 9, 0}, 77, i);
        ASSERT_TRUE(rounded == down || rounded == up) << rounded;
        ups += rounded == up;
      }
      double p = low / 65536.0, share = double(ups) / draws;
      EXPECT_NEAR(share, p, 6 * std::sqrt(p * (1 - p) / draws))
          << high << " " << low;
    }
}

TEST(Random, RoundingKeepsWhatNeedsNone) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (uint64_t i = 0; i < 1000; ++i) {
    for (double exact :
         {0.0, 1.0, -1.0078125, 0x1.fep127, 0x1p-133, infinity, -infinity})
      EXPECT_EQ(stochasticallyRounded(exact, {1, 2, 0}, 3, i), exact);
    EXPECT_TRUE(std::signbit(stochasticallyRounded(-0.0, {1, 2, 0}, 3, i)));
    EXPECT_TRUE(std::isnan(stochasticallyRounded(NAN, {1, 2, 0}, 3, i)));
    // Above the largest bf16 there is no neighbour.
    EXPECT_EQ(stochasticallyRounded(0x1.fffffep127, {1, 2, 0}, 3, i),
              0x1.fep127);
    EXPECT_EQ(stochasticallyRounded(-0x1.fffffep127, {1, 2, 0}, 3, i),
              -0x1.fep127);
  }
}

/// A part draws what the whole draws there.
TEST(Random, RoundingCountsInTheWholeSpace) {
  auto rounding = [](const std::string &shape, const std::string &where) {
    std::string type =
        "tensor<" + shape + "xf32, #transformer.dims<ffn, embed>>";
    return "func.func @f(%x: " + type +
           ", %s: tensor<i32>, %o: tensor<i32>) -> " + type + R"( {
      %0 = transformer.map ins(%x, %s, %o : )" +
           type + ", tensor<i32>, tensor<i32>) -> " + type + R"( {
      ^bb0(%e: f32, %a: i32, %b: i32):
        %m = transformer.stochastic_round %e by %a, %a, %a stream 9 )" +
           where + R"(
        transformer.yield %m : f32
      }
      return %0 : )" +
           type + "\n}";
  };
  Program whole(rounding("6x5", "")),
      part(rounding("2x5", "of [6, 5] at [\"ffn\"] %b"));
  Tensor input = randomTensor({6, 5}, 1);
  Tensor expected = whole.run({input, Tensor::scalar(8), Tensor::scalar(0)})[0];
  for (int64_t first : {0, 2, 4}) {
    auto elements = input.getElements().slice(first * 5, 10);
    Tensor rounded = part.run(
        {Tensor({2, 5}, {elements.begin(), elements.end()}), Tensor::scalar(8),
         Tensor::scalar(static_cast<double>(first))})[0];
    for (int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(rounded[i], expected[first * 5 + i]);
      EXPECT_EQ(rounded[i], stochasticallyRounded(elements[i], {8, 8, 8}, 9,
                                                  first * 5 + i));
    }
  }
}

/// Attention draws by (sample, head, query, key).
TEST(Random, AttentionDropsByPair) {
  Program program(R"(
    func.func @f(%q: tensor<1x2x3x1xf32, #bshd>, %v: tensor<1x2x3x1xf32, #bshd>, %r: tensor<i32>) -> tensor<1x2x3x1xf32, #bshd> {
      %o, %l = transformer.attention %q, %q, %v random(%r, %r, %r : tensor<i32>, tensor<i32>, tensor<i32>)
          scale 1.0 dropout "att" rate 5.0e-1 : tensor<1x2x3x1xf32, #bshd>, tensor<1x2x3x1xf32, #bshd>,
          tensor<1x2x3x1xf32, #bshd> -> tensor<1x2x3x1xf32, #bshd>, tensor<1x3x2xf32, #bhs>
      return %o : tensor<1x2x3x1xf32, #bshd>
    })");
  // Queries of zero see both keys alike: probability 1/2, doubled when kept.
  Tensor out = program.run({Tensor({1, 2, 3, 1}),
                            Tensor({1, 2, 3, 1}, {1, 10, 100, 2, 20, 200}),
                            Tensor::scalar(6)})[0];
  uint32_t stream = meshwork::transformer::randomStream("att");
  for (uint32_t query = 0; query < 2; ++query)
    for (uint32_t head = 0; head < 3; ++head) {
      double expected = 0, value[] = {1, 10, 100};
      for (uint32_t key = 0; key < 2; ++key) {
        uint32_t index = ((6 * 3 + head) * 2 + query) * 2 + key;
        if (philox({index, 0, 6, 0}, {6, stream}) >= 0x80000000u)
          expected += value[head] * (key + 1);
      }
      EXPECT_NEAR(out.at({0, query, head, 0}), expected, 1e-12);
    }
}

} // namespace
