// Every instruction set that this machine has gives the softmax and gradient
// that the plain one gives, up to how often a multiply-add rounds. Scores are
// below 8, so exp's argument is off by 8 * 2^-24 at most, and so, relatively,
// is each result. The bound 32 * 2^-24 holds for the sums of products behind
// it. Results in bf16 may then fall on either side of a rounding: 2^-8.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "runtime/device/cpu/AttentionKernels.h"
#include "runtime/device/cpu/Bf16.h"

namespace meshwork::runtime::cpu {
namespace {

constexpr int64_t rows = 37, columns = 83, ld = 96, d = 20;

struct Blocks {
  std::vector<float> scores, dprob, max, sum, out, lse, delta;
  std::vector<float> probabilities, dscores; // as f32, seen columns alone
};

std::vector<float> random(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float &value : values)
    value = static_cast<float>(generator()) * 0x1p-29f - 4;
  return values;
}

template <typename T> std::vector<float> widened(const std::vector<T> &from) {
  std::vector<float> values;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      values.push_back(toFloat(from[r * ld + c]));
  return values;
}

/// Two key blocks of softmax, so that sums are rescaled, then a gradient.
template <typename T>
Blocks compute(const AttentionKernels &kernels, bool causal) {
  constexpr bool isBf16 = sizeof(T) == 2;
  Blocks blocks{random(rows * ld, 1),
                random(rows * ld, 2),
                std::vector<float>(rows, -INFINITY),
                std::vector<float>(rows),
                std::vector<float>(rows * d, 1),
                random(rows, 3),
                random(rows, 4),
                {},
                {}};
  std::vector<T> probabilities(rows * ld), dscores(rows * ld);
  ScoreBlock block;
  block.rows = rows, block.columns = columns, block.ld = ld;
  block.scale = 0.75f;
  std::vector<QueryRow> queries;
  for (int64_t r = 0; r < rows; ++r)
    queries.push_back({r, causal ? r - 20 : 0, causal ? r + 1 : columns});
  block.queries = queries.data();
  block.probabilities = probabilities.data();
  block.dropout.active = true;
  block.dropout.random = {1, 2, 3};
  block.dropout.threshold = 1u << 30;
  block.dropout.keepScale = 4.0f / 3;
  block.dropout.firstIndex = 12345;
  block.dropout.queryStride = 200;
  std::vector<int32_t> keys(ld);
  for (int64_t c = 0; c < columns; ++c) // two runs
    keys[c] = static_cast<int32_t>(c < 40 ? c : c + 90);
  block.dropout.keys = keys.data();
  SoftmaxState state{blocks.max.data(), blocks.sum.data(), blocks.out.data(),
                     d};
  for (uint32_t seed : {5u, 6u}) {
    std::vector<float> scores = random(rows * ld, seed);
    block.scores = scores.data();
    (isBf16 ? kernels.softmaxBf16 : kernels.softmaxF32)(block, state);
  }
  block.scores = blocks.scores.data();
  GradBlock grad{block, blocks.dprob.data(), dscores.data(), blocks.lse.data(),
                 blocks.delta.data()};
  (isBf16 ? kernels.gradBf16 : kernels.gradF32)(grad);
  blocks.probabilities = widened(probabilities);
  blocks.dscores = widened(dscores);
  return blocks;
}

void expectNear(const std::vector<float> &a, const std::vector<float> &b,
                double relative) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_LE(std::fabs(a[i] - b[i]), relative * (std::fabs(a[i]) + 1e-3))
        << "element " << i << ": " << a[i] << ", " << b[i];
}

template <typename T> void expectSame(const AttentionKernels &kernels) {
  for (bool causal : {false, true}) {
    Blocks plain = compute<T>(attentionKernelsBase, causal);
    Blocks other = compute<T>(kernels, causal);
    double relative = sizeof(T) == 2 ? 0x1p-8 : 32 * 0x1p-24;
    EXPECT_EQ(plain.max, other.max);
    expectNear(plain.sum, other.sum, 32 * 0x1p-24);
    expectNear(plain.out, other.out, 32 * 0x1p-24);
    expectNear(plain.probabilities, other.probabilities, relative);
    // A difference of two numbers below 8 * 16: their error, not its own.
    expectNear(plain.dscores, other.dscores, relative * 64);
  }
}

void expectSameInBothTypes(const AttentionKernels &kernels) {
  expectSame<float>(kernels);
  expectSame<Bf16>(kernels);
}

TEST(AttentionKernels, Level3) {
  if (!__builtin_cpu_supports("x86-64-v3"))
    GTEST_SKIP() << "the machine lacks these instructions";
  expectSameInBothTypes(attentionKernelsV3);
}

TEST(AttentionKernels, Level4) {
  if (!__builtin_cpu_supports("x86-64-v4"))
    GTEST_SKIP() << "the machine lacks these instructions";
  expectSameInBothTypes(attentionKernelsV4);
}

TEST(AttentionKernels, Level4WithBf16) {
  if (!__builtin_cpu_supports("avx512bf16"))
    GTEST_SKIP() << "the machine lacks these instructions";
  expectSameInBothTypes(attentionKernelsV4Bf16);
}

TEST(AttentionKernels, RoundingToBf16KeepsNaNs) {
  float values[3] = {NAN, std::bit_cast<float>(0x7fffffffu), 1.0f};
  for (const AttentionKernels *kernels :
       {&attentionKernelsBase, &attentionKernels()}) {
    std::vector<float> from(16, 0);
    std::copy(values, values + 3, from.begin());
    std::vector<Bf16> to(16);
    kernels->roundBf16(from.data(), 16, nullptr, 1, 16, to.data(), 16);
    EXPECT_TRUE(std::isnan(toFloat(to[0])));
    EXPECT_TRUE(std::isnan(toFloat(to[1])));
    EXPECT_EQ(toFloat(to[2]), 1.0f);
  }
}

// Tiles of sixteen by sixteen and what is left at the ends.
TEST(AttentionKernels, CopiesAreDense) {
  std::vector<float> from = random(rows * ld, 7);
  std::vector<Bf16> narrow(from.size());
  attentionKernels().roundBf16(from.data(), ld, nullptr, rows, ld,
                               narrow.data(), ld);
  std::vector<float> wide(rows * columns), turned(columns * ld);
  for (const AttentionKernels *kernels :
       {&attentionKernelsBase, &attentionKernels()}) {
    kernels->widenBf16(narrow.data(), ld, rows, columns, wide.data(), columns);
    kernels->transposeF32(from.data(), ld, rows, columns, turned.data(), ld);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        ASSERT_EQ(wide[r * columns + c], toFloat(narrow[r * ld + c]));
        ASSERT_EQ(turned[c * ld + r], from[r * ld + c]);
      }
    kernels->transposeBf16(narrow.data(), ld, rows, columns, turned.data(), ld);
    kernels->widenF32(from.data(), ld, rows, columns, wide.data(), columns);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        ASSERT_EQ(turned[c * ld + r], toFloat(narrow[r * ld + c]));
        ASSERT_EQ(wide[r * columns + c], from[r * ld + c]);
      }
  }
}

/// Of whole numbers, so that every order of a sum gives the same. Beside the
/// result, past n up to a multiple of sixteen, nothing is written.
void expectProduct(const AttentionKernels &kernels, int64_t m, int64_t n,
                   int64_t k, bool transposed, bool accumulate) {
  std::vector<float> lhs = random(rows * ld, 8), rhs = random(rows * ld, 9);
  for (std::vector<float> *values : {&lhs, &rhs})
    for (float &value : *values)
      value = std::floor(value);
  std::vector<float> to(rows * ld, 3);
  F32Product product{.m = m, .n = n, .k = k, .lhs = lhs.data()};
  product.lhsRow = transposed ? 1 : ld;
  product.lhsStep = transposed ? ld : 1;
  product.rhs = rhs.data(), product.rhsLd = ld;
  product.to = to.data(), product.toLd = ld;
  product.accumulate = accumulate;
  kernels.multiply(product);
  int64_t padded = (n + 15) / 16 * 16;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < ld; ++c) {
      bool written = r < m && c < padded;
      float sum = written && !accumulate ? 0 : 3;
      for (int64_t i = 0; i < k && written; ++i)
        sum += lhs[r * product.lhsRow + i * product.lhsStep] * rhs[i * ld + c];
      ASSERT_EQ(to[r * ld + c], sum)
          << m << " x " << n << " x " << k << ", row " << r << ", column " << c;
    }
}

TEST(AttentionKernels, ProductsOfBlocks) {
  bool transposed = false;
  for (const AttentionKernels *kernels :
       {&attentionKernelsBase, &attentionKernels()})
    for (int64_t m : {1, 5, 6, 7, 34, 37}) // tiles of six rows and their rests
      for (int64_t n : {1, 64, 83}) {
        expectProduct(*kernels, m, n, 1 + m % 20, transposed, n == 64);
        transposed = !transposed;
      }
}

} // namespace
} // namespace meshwork::runtime::cpu
