// Values of the primitive ops, small enough to check by eye or against a
// formula written out anew.
#include "Harness.h"

#include <cmath>

using namespace meshwork::interpreter;

namespace {

using Elements = std::vector<double>;
Elements elementsOf(const Tensor &tensor) { return tensor.getElements().vec(); }
Tensor counting(std::vector<int64_t> shape) {
  Tensor tensor(std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor[i] = static_cast<double>(i);
  return tensor;
}

TEST(Values, Reduce) {
  Program program(R"(
    func.func @f(%a: tensor<2x3xf32, #se>) -> (tensor<3xf32, #e>, tensor<2xf32, #s>, tensor<f32>) {
      %0 = transformer.reduce add %a over <sequence> : tensor<2x3xf32, #se> -> tensor<3xf32, #e>
      %1 = transformer.reduce max %a over <embed> : tensor<2x3xf32, #se> -> tensor<2xf32, #s>
      %2 = transformer.reduce max %a over <embed, sequence> : tensor<2x3xf32, #se> -> tensor<f32>
      return %0, %1, %2 : tensor<3xf32, #e>, tensor<2xf32, #s>, tensor<f32>
    })");
  auto results =
      program.run({Tensor({2, 3}, Elements{-1, -2, -3, -5, -4, -6})});
  EXPECT_EQ(elementsOf(results[0]), Elements({-6, -6, -9}));
  EXPECT_EQ(elementsOf(results[1]), Elements({-1, -4}));
  EXPECT_EQ(elementsOf(results[2]), Elements({-1}));
  EXPECT_TRUE(std::isnan(
      program.run({Tensor({2, 3}, Elements{1, NAN, 3, 4, 5, 6})})[1][0]))
      << "NaN is not lost";
}

TEST(Values, TopK) {
  Program program(R"(
    func.func @f(%a: tensor<3x4xf32, #se>, %v: tensor<3xf32, #s>)
        -> (tensor<3x2xi32, #transformer.dims<sequence, k>>, tensor<3x2xi32, #transformer.dims<sequence, k>>, tensor<3x2xi32, #transformer.dims<sequence, k>>) {
      %0 = transformer.top_k %a : tensor<3x4xf32, #se> -> tensor<3x2xi32, #transformer.dims<sequence, k>>
      %1 = transformer.top_k %a groups 2 kept 1 by maximum : tensor<3x4xf32, #se> -> tensor<3x2xi32, #transformer.dims<sequence, k>>
      %2 = transformer.top_k %a valid %v : tensor<3xf32, #s> groups 2 kept 1 by two_best : tensor<3x4xf32, #se> -> tensor<3x2xi32, #transformer.dims<sequence, k>>
      return %0, %1, %2 : tensor<3x2xi32, #transformer.dims<sequence, k>>, tensor<3x2xi32, #transformer.dims<sequence, k>>, tensor<3x2xi32, #transformer.dims<sequence, k>>
    })");
  // The second row's largest is in one group, the better pair in the other; the
  // third has a NaN and equal scores.
  auto results = program.run(
      {Tensor({3, 4}, Elements{1, 3, 2, 3, 5, -4, 2, 1, 7, 7, 7, NAN}),
       Tensor({3}, Elements{0, 1, 1})});
  EXPECT_EQ(elementsOf(results[0]), Elements({1, 3, 0, 2, 3, 0}));
  EXPECT_EQ(elementsOf(results[1]), Elements({1, 0, 0, 1, 3, 2}));
  EXPECT_EQ(elementsOf(results[2]), Elements({-1, -1, 2, 3, 3, 2}));
}

/// Scores are f32: what is equal then is taken in order.
TEST(Values, TopKIsOfF32) {
  Program program(R"(
    func.func @f(%a: tensor<2xf32, #e>) -> tensor<1xi32, #transformer.dims<k>> {
      %0 = transformer.top_k %a : tensor<2xf32, #e> -> tensor<1xi32, #transformer.dims<k>>
      return %0 : tensor<1xi32, #transformer.dims<k>>
    })");
  EXPECT_EQ(program.run({Tensor({2}, Elements{1, 1 + 1e-12})})[0][0], 0);
}

TEST(Values, RollAndRotaryTable) {
  Program program(R"(
    func.func @f(%a: tensor<2x4xf32, #transformer.dims<sequence, head_dim>>)
        -> (tensor<2x4xf32, #transformer.dims<sequence, head_dim>>, tensor<2x4xf32, #transformer.dims<sequence, head_dim>>,
            tensor<2x4xf32, #transformer.dims<sequence, head_dim>>) {
      %0 = transformer.roll %a by 1 : tensor<2x4xf32, #transformer.dims<sequence, head_dim>>
      %c, %s = transformer.rotary_table inverse_frequencies [2.0, 0.5] scale 3.0
          : tensor<2x4xf32, #transformer.dims<sequence, head_dim>>
      return %0, %c, %s : tensor<2x4xf32, #transformer.dims<sequence, head_dim>>,
          tensor<2x4xf32, #transformer.dims<sequence, head_dim>>, tensor<2x4xf32, #transformer.dims<sequence, head_dim>>
    })");
  auto results = program.run({counting({2, 4})});
  EXPECT_EQ(elementsOf(results[0]), Elements({1, 2, 3, 0, 5, 6, 7, 4}));
  double c0 = 3 * std::cos(2.0), c1 = 3 * std::cos(0.5), s0 = 3 * std::sin(2.0),
         s1 = 3 * std::sin(0.5);
  EXPECT_EQ(elementsOf(results[1]), Elements({3, 3, 3, 3, c0, c1, c0, c1}));
  EXPECT_EQ(elementsOf(results[2]), Elements({0, 0, 0, 0, -s0, -s1, s0, s1}));
}

TEST(Values, SliceAndUnslice) {
  Program program(R"(
    func.func @f(%a: tensor<3x2xf32, #ve>) -> (tensor<2xf32, #e>, tensor<2x2xf32, #se>, tensor<4x2xf32, #ve>) {
      %0 = transformer.slice %a dim "vocab" offset 1 : tensor<3x2xf32, #ve> -> tensor<2xf32, #e>
      %1 = transformer.slice %a dim "vocab" offset 1 : tensor<3x2xf32, #ve> -> tensor<2x2xf32, #se>
      %2 = transformer.unslice %0, %1 dim "vocab" offsets [0, 2] : tensor<2xf32, #e>, tensor<2x2xf32, #se> -> tensor<4x2xf32, #ve>
      return %0, %1, %2 : tensor<2xf32, #e>, tensor<2x2xf32, #se>, tensor<4x2xf32, #ve>
    })");
  auto results = program.run({counting({3, 2})});
  EXPECT_EQ(elementsOf(results[0]), Elements({2, 3}));
  EXPECT_EQ(elementsOf(results[1]), Elements({2, 3, 4, 5}));
  EXPECT_EQ(elementsOf(results[2]), Elements({2, 3, 0, 0, 2, 3, 4, 5}));
}

TEST(Values, SplitAndMerge) {
  Program program(R"(
    func.func @f(%a: tensor<4x2xf32, #ve>) -> (tensor<2x2x2xf32, #transformer.dims<blocks, vocab, embed>>, tensor<4x2xf32, #ve>) {
      %0 = transformer.split %a dim "vocab" : tensor<4x2xf32, #ve> -> tensor<2x2x2xf32, #transformer.dims<blocks, vocab, embed>>
      %1 = transformer.merge %0 dim "vocab" : tensor<2x2x2xf32, #transformer.dims<blocks, vocab, embed>> -> tensor<4x2xf32, #ve>
      return %0, %1 : tensor<2x2x2xf32, #transformer.dims<blocks, vocab, embed>>, tensor<4x2xf32, #ve>
    })");
  Tensor whole = counting({4, 2});
  auto results = program.run({whole});
  for (const Tensor &result : results)
    EXPECT_EQ(elementsOf(result), elementsOf(whole));
  EXPECT_EQ(results[0].getShape().size(), 3u);
}

TEST(Values, RoundEven) {
  Program program(R"(
    func.func @f(%a: tensor<2xf32, #e>) -> tensor<2xf32, #e> {
      %0 = transformer.map ins(%a : tensor<2xf32, #e>) -> tensor<2xf32, #e> {
      ^bb0(%x: f32):
        %half = arith.constant 5.000000e-01 : f32
        %s = arith.addf %x, %half : f32
        %r = math.roundeven %s : f32
        transformer.yield %r : f32
      }
      return %0 : tensor<2xf32, #e>
    })");
  // 0.5 and 1.5
  EXPECT_EQ(elementsOf(program.run({counting({2})})[0]), Elements({0, 2}));
}

TEST(Values, ContractWithBias) {
  Program program(R"(
    func.func @f(%a: tensor<2x3xf32, #se>, %b: tensor<2x3xf32, #ve>, %c: tensor<2xf32, #v>) -> tensor<2x2xf32, #transformer.dims<sequence, vocab>> {
      %0 = transformer.contract "se,ve->sv" %a, %b bias %c : tensor<2xf32, #v> : tensor<2x3xf32, #se>, tensor<2x3xf32, #ve>
          -> tensor<2x2xf32, #transformer.dims<sequence, vocab>>
      return %0 : tensor<2x2xf32, #transformer.dims<sequence, vocab>>
    })");
  Tensor result = program.run(
      {counting({2, 3}), counting({2, 3}), Tensor({2}, Elements{100, 200})})[0];
  EXPECT_EQ(elementsOf(result), Elements({105, 214, 114, 250}));
}

TEST(Values, EmbeddingAndItsGradient) {
  Program program(R"(
    func.func @f(%t: tensor<3x2xf32, #ve>, %i: tensor<1x3xi32, #bs>) -> (tensor<1x3x2xf32, #bse>, tensor<3x2xf32, #ve>) {
      %0 = transformer.embedding %t, %i : tensor<3x2xf32, #ve>, tensor<1x3xi32, #bs> -> tensor<1x3x2xf32, #bse>
      %1 = transformer.embedding_grad %i, %0 : tensor<1x3xi32, #bs>, tensor<1x3x2xf32, #bse> -> tensor<3x2xf32, #ve>
      return %0, %1 : tensor<1x3x2xf32, #bse>, tensor<3x2xf32, #ve>
    })");
  auto results =
      program.run({counting({3, 2}), Tensor({1, 3}, Elements{2, 0, 2})});
  EXPECT_EQ(elementsOf(results[0]), Elements({4, 5, 0, 1, 4, 5}));
  EXPECT_EQ(elementsOf(results[1]), Elements({0, 1, 0, 0, 8, 10}));
}

/// softmax(scale q k^T) v written out for one head, with a mask by cases.
TEST(Values, AttentionIsMaskedSoftmax) {
  Program program(R"(
    func.func @f(%q: tensor<1x4x2x3xf32, #bshd>, %k: tensor<1x4x1x3xf32, #bskd>, %v: tensor<1x4x1x3xf32, #bskd>)
        -> (tensor<1x4x2x3xf32, #bshd>, tensor<1x2x4xf32, #bhs>) {
      %o, %l = transformer.attention %q, %k, %v causal scale 0.5 window 2 : tensor<1x4x2x3xf32, #bshd>,
          tensor<1x4x1x3xf32, #bskd>, tensor<1x4x1x3xf32, #bskd> -> tensor<1x4x2x3xf32, #bshd>, tensor<1x2x4xf32, #bhs>
      return %o, %l : tensor<1x4x2x3xf32, #bshd>, tensor<1x2x4xf32, #bhs>
    })");
  Tensor q = randomTensor({1, 4, 2, 3}, 1), k = randomTensor({1, 4, 1, 3}, 2),
         v = randomTensor({1, 4, 1, 3}, 3);
  auto results = program.run({q, k, v});
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < 4; ++i) {
      double sum = 0, out[3] = {};
      for (int64_t j = std::max<int64_t>(0, i - 1); j <= i;
           ++j) { // Itself and the one before.
        double score = 0;
        for (int64_t d = 0; d < 3; ++d)
          score += 0.5 * q[(i * 2 + h) * 3 + d] * k[j * 3 + d];
        sum += std::exp(score);
        for (int64_t d = 0; d < 3; ++d)
          out[d] += std::exp(score) * v[j * 3 + d];
      }
      for (int64_t d = 0; d < 3; ++d)
        EXPECT_NEAR(results[0][(i * 2 + h) * 3 + d], out[d] / sum, 1e-13);
      EXPECT_NEAR(results[1][h * 4 + i], std::log(sum), 1e-13);
    }
}

TEST(Values, HeadLossIsCrossEntropyAlsoOfLargeLogits) {
  Program program(R"(
    func.func @f(%h: tensor<2x1xf32, #se>, %w: tensor<2x1xf32, #ve>, %t: tensor<2xi32, #s>) -> tensor<f32> {
      %0 = transformer.head_loss %h, %w, %t scale 0.5 : tensor<2x1xf32, #se>, tensor<2x1xf32, #ve>, tensor<2xi32, #s> -> tensor<f32>
      return %0 : tensor<f32>
    })");
  // Logits are (1, 2) and (1000, 2000).
  Tensor loss = program.run({Tensor({2, 1}, Elements{1, 1000}),
                             Tensor({2, 1}, Elements{1, 2}),
                             Tensor({2}, Elements{1, 0})})[0];
  EXPECT_NEAR(loss[0], 0.5 * (std::log(1 + std::exp(-1)) + 1000), 1e-12);
}

TEST(Values, HeadLossCapsLogits) {
  Program program(R"(
    func.func @f(%h: tensor<1x1xf32, #se>, %w: tensor<2x1xf32, #ve>, %t: tensor<1xi32, #s>) -> tensor<f32> {
      %0 = transformer.head_loss %h, %w, %t scale 1.0 cap 3.0 : tensor<1x1xf32, #se>, tensor<2x1xf32, #ve>, tensor<1xi32, #s> -> tensor<f32>
      return %0 : tensor<f32>
    })");
  // Logits are (2, 200), of which the cap leaves 3 tanh(2 / 3) and 3.
  Tensor loss = program.run({Tensor({1, 1}, Elements{2}),
                             Tensor({2, 1}, Elements{1, 100}),
                             Tensor({1}, Elements{0})})[0];
  double below = 3 - 3 * std::tanh(2.0 / 3);
  EXPECT_NEAR(loss[0], below + std::log(1 + std::exp(-below)), 1e-12);
}

/// Five rows in two chunks: [0, 2) and [2, 5).
TEST(Values, FusedSplitsRowsIntoChunks) {
  Program program(R"(
    func.func @f(%a: tensor<5x2xf32, #se>) -> (tensor<5x2xf32, #se>, tensor<2x2xf32, #transformer.dims<chunk, embed>>,
                                               tensor<2xf32, #transformer.dims<chunk>>) {
      %0:3 = transformer.fused rows <sequence> cols <embed> ins(%a : tensor<5x2xf32, #se>)
          -> tensor<5x2xf32, #se>, tensor<2x2xf32, #transformer.dims<chunk, embed>>, tensor<2xf32, #transformer.dims<chunk>> {
      ^bb0(%x: tensor<5x2xf32, #se>):
        %d = transformer.map ins(%x : tensor<5x2xf32, #se>) -> tensor<5x2xf32, #se> {
        ^bb0(%e: f32):
          %s = arith.addf %e, %e : f32
          transformer.yield %s : f32
        }
        %r = transformer.roll %d by 1 : tensor<5x2xf32, #se>
        %p = transformer.reduce add %d over <sequence> : tensor<5x2xf32, #se> -> tensor<2xf32, #e>
        %q = transformer.reduce add %d over <sequence, embed> : tensor<5x2xf32, #se> -> tensor<f32>
        transformer.yield %r, %p, %q : tensor<5x2xf32, #se>, tensor<2xf32, #e>, tensor<f32>
      }
      return %0#0, %0#1, %0#2 : tensor<5x2xf32, #se>, tensor<2x2xf32, #transformer.dims<chunk, embed>>, tensor<2xf32, #transformer.dims<chunk>>
    })");
  auto results = program.run({counting({5, 2})});
  EXPECT_EQ(elementsOf(results[0]),
            Elements({2, 0, 6, 4, 10, 8, 14, 12, 18, 16}));
  EXPECT_EQ(elementsOf(results[1]), Elements({4, 8, 36, 42}));
  EXPECT_EQ(elementsOf(results[2]), Elements({12, 78}));
}

TEST(Values, IntegersInBodiesWrapAtThirtyTwoBits) {
  Program program(R"(
    func.func @f(%a: tensor<2xi32, #e>) -> tensor<2xf32, #e> {
      %0 = transformer.map ins(%a : tensor<2xi32, #e>) -> tensor<2xf32, #e> {
      ^bb0(%x: i32):
        %c = arith.constant 2 : i32
        %m = arith.muli %x, %c : i32
        %i = transformer.index "embed" : i32
        %s = arith.addi %m, %i : i32
        %f = arith.sitofp %s : i32 to f32
        transformer.yield %f : f32
      }
      return %0 : tensor<2xf32, #e>
    })");
  EXPECT_EQ(elementsOf(program.run({Tensor({2}, Elements{2147483647, 5})})[0]),
            Elements({-2, 11}));
}

} // namespace
