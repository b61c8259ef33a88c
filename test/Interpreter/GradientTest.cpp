// Gradients of the primitive ops other than map, and of head_loss.
#include "Harness.h"

using namespace meshwork::interpreter;

namespace {

TEST(Gradient, ReduceAdd) {
  Program program(R"(
    func.func @f(%a: tensor<2x3x4xf32, #bse>) -> (tensor<3xf32, #s>, tensor<f32>) {
      %0 = transformer.reduce add %a over <batch, embed> : tensor<2x3x4xf32, #bse> -> tensor<3xf32, #s>
      %1 = transformer.reduce add %a over <batch, sequence, embed> : tensor<2x3x4xf32, #bse> -> tensor<f32>
      return %0, %1 : tensor<3xf32, #s>, tensor<f32>
    })");
  checkGradient(program, {randomTensor({2, 3, 4}, 1)});
}

/// The maximum gets no gradient, and needs none where it only shifts exponents:
/// the derivative of m + log sum exp(a - m) with respect to m is zero.
TEST(Gradient, ReduceMaxInsideLogSumExp) {
  Program program(R"(
    func.func @f(%a: tensor<3x4xf32, #se>) -> tensor<3xf32, #s> {
      %m = transformer.reduce max %a over <embed> : tensor<3x4xf32, #se> -> tensor<3xf32, #s>
      %e = transformer.map ins(%a, %m : tensor<3x4xf32, #se>, tensor<3xf32, #s>) -> tensor<3x4xf32, #se> {
      ^bb0(%x: f32, %y: f32):
        %d = arith.subf %x, %y : f32
        %p = math.exp %d : f32
        transformer.yield %p : f32
      }
      %s = transformer.reduce add %e over <embed> : tensor<3x4xf32, #se> -> tensor<3xf32, #s>
      %l = transformer.map ins(%s, %m : tensor<3xf32, #s>, tensor<3xf32, #s>) -> tensor<3xf32, #s> {
      ^bb0(%x: f32, %y: f32):
        %p = math.log %x : f32
        %q = arith.addf %p, %y : f32
        transformer.yield %q : f32
      }
      return %l : tensor<3xf32, #s>
    })");
  checkGradient(program, {randomTensor({3, 4}, 1)});
}

class Rolls : public testing::TestWithParam<int> {};
TEST_P(Rolls, MatchFiniteDifferences) {
  Program program(R"(
    func.func @f(%a: tensor<3x5xf32, #se>) -> tensor<3x5xf32, #se> {
      %0 = transformer.roll %a by )" +
                  std::to_string(GetParam()) + R"( : tensor<3x5xf32, #se>
      return %0 : tensor<3x5xf32, #se>
    })");
  checkGradient(program, {randomTensor({3, 5}, 1)});
}
INSTANTIATE_TEST_SUITE_P(Shifts, Rolls, testing::Values(0, 1, 2, 4));

TEST(Gradient, SliceThatKeepsRenamesOrDropsItsDim) {
  Program program(R"(
    func.func @f(%a: tensor<6x4xf32, #ve>, %b: tensor<2x3x4xf32, #bse>)
        -> (tensor<3x4xf32, #se>, tensor<2x4xf32, #transformer.dims<batch, embed>>) {
      %0 = transformer.slice %a dim "vocab" offset 2 : tensor<6x4xf32, #ve> -> tensor<3x4xf32, #se>
      %1 = transformer.slice %b dim "sequence" offset 1 : tensor<2x3x4xf32, #bse>
          -> tensor<2x4xf32, #transformer.dims<batch, embed>>
      return %0, %1 : tensor<3x4xf32, #se>, tensor<2x4xf32, #transformer.dims<batch, embed>>
    })");
  checkGradient(program, {randomTensor({6, 4}, 1), randomTensor({2, 3, 4}, 2)});
}

struct Product {
  const char *equation, *lhs, *rhs, *result;
  std::vector<int64_t> lhsShape, rhsShape;
};
void PrintTo(const Product &product, std::ostream *os) {
  *os << product.equation;
}
class Products : public testing::TestWithParam<Product> {};
TEST_P(Products, MatchFiniteDifferences) {
  auto type = [](const char *text) {
    return "tensor<" + std::string(text) + ">";
  };
  std::string l = type(GetParam().lhs), r = type(GetParam().rhs),
              y = type(GetParam().result);
  Program program("func.func @f(%a: " + l + ", %b: " + r + ") -> " + y +
                  " {\n  %0 = transformer.contract \"" + GetParam().equation +
                  "\" %a, %b : " + l + ", " + r + " -> " + y +
                  "\n  return %0 : " + y + "\n}");
  checkGradient(program, {randomTensor(GetParam().lhsShape, 1),
                          randomTensor(GetParam().rhsShape, 2)});
}
INSTANTIATE_TEST_SUITE_P(
    Equations, Products,
    testing::Values(
        Product{"se,ve->sv",
                "3x4xf32, #se",
                "5x4xf32, #ve",
                "3x5xf32, #transformer.dims<sequence, vocab>",
                {3, 4},
                {5, 4}},
        Product{"bse,ev->bsv",
                "2x3x4xf32, #bse",
                "4x5xf32, #transformer.dims<embed, vocab>",
                "2x3x5xf32, #transformer.dims<batch, sequence, vocab>",
                {2, 3, 4},
                {4, 5}},
        Product{"bse,hde->bshd",
                "2x3x4xf32, #bse",
                "2x3x4xf32, #transformer.dims<heads, head_dim, embed>",
                "2x3x2x3xf32, #bshd",
                {2, 3, 4},
                {2, 3, 4}},
        Product{"bshd,ehd->bse",
                "2x3x2x3xf32, #bshd",
                "4x2x3xf32, #transformer.dims<embed, heads, head_dim>",
                "2x3x4xf32, #bse",
                {2, 3, 2, 3},
                {4, 2, 3}},
        Product{"bse,eqhd->bsqhd",
                "1x3x4xf32, #bse",
                "4x3x2x2xf32, #transformer.dims<embed, qkv, heads, head_dim>",
                "1x3x3x2x2xf32, #transformer.dims<batch, sequence, qkv, heads, "
                "head_dim>",
                {1, 3, 4},
                {4, 3, 2, 2}},
        Product{"bs,bse->be",
                "2x3xf32, #bs",
                "2x3x4xf32, #bse",
                "2x4xf32, #transformer.dims<batch, embed>",
                {2, 3},
                {2, 3, 4}}));

TEST(Gradient, EmbeddingAddsUpRepeatedIds) {
  Program program(R"(
    func.func @f(%t: tensor<6x4xf32, #ve>, %i: tensor<2x3xi32, #bs>) -> tensor<2x3x4xf32, #bse> {
      %0 = transformer.embedding %t, %i : tensor<6x4xf32, #ve>, tensor<2x3xi32, #bs> -> tensor<2x3x4xf32, #bse>
      return %0 : tensor<2x3x4xf32, #bse>
    })");
  checkGradient(program,
                {randomTensor({6, 4}, 1),
                 Tensor({2, 3}, std::vector<double>{0, 5, 2, 2, 2, 0})});
}

struct AttentionCase {
  const char *name;
  int heads, kvHeads;
  const char *options;
};
void PrintTo(const AttentionCase &attention, std::ostream *os) {
  *os << attention.name;
}
class Attentions : public testing::TestWithParam<AttentionCase> {};
TEST_P(Attentions, MatchFiniteDifferences) {
  auto [name, heads, kvHeads, options] = GetParam();
  std::string q = "tensor<2x5x" + std::to_string(heads) + "x3xf32, #bshd>";
  std::string k = "tensor<2x5x" + std::to_string(kvHeads) + "x3xf32, " +
                  (heads == kvHeads ? "#bshd>" : "#bskd>");
  std::string lse = "tensor<2x" + std::to_string(heads) + "x5xf32, #bhs>";
  Program program("func.func @f(%q: " + q + ", %k: " + k + ", %v: " + k +
                  ") -> " + q + R"( {
      %seed = transformer.step_input seed : tensor<i32>
      %step = transformer.step_input step : tensor<i32>
      %first = transformer.step_input first_sample : tensor<i32>
      %o, %lse = transformer.attention %q, %k, %v )" +
                  options + " : " + q + ", " + k + ", " + k + " -> " + q +
                  ", " + lse + R"(
      return %o : )" +
                  q + "\n}");
  program.interpreter.inputs = {
      {meshwork::transformer::StepInput::seed, 3},
      {meshwork::transformer::StepInput::step, 1},
      {meshwork::transformer::StepInput::first_sample, 4}};
  checkGradient(program, {randomTensor({2, 5, heads, 3}, 1),
                          randomTensor({2, 5, kvHeads, 3}, 2),
                          randomTensor({2, 5, kvHeads, 3}, 3)});
}
#define RANDOM                                                                 \
  "random(%seed, %step, %first : tensor<i32>, tensor<i32>, tensor<i32>) "
INSTANTIATE_TEST_SUITE_P(
    Masks, Attentions,
    testing::Values(
        AttentionCase{"full", 2, 2, "scale 0.5"},
        AttentionCase{"causal", 2, 2, "causal scale 0.5"},
        AttentionCase{"grouped", 4, 2, "causal scale 0.7"},
        AttentionCase{"multi_query", 4, 1, "causal scale 0.7"},
        AttentionCase{"window", 2, 2, "causal scale 0.5 window 2"},
        AttentionCase{"window_not_causal", 2, 2, "scale 0.5 window 3"},
        AttentionCase{"cap", 4, 2, "causal scale 1.5 cap 0.8"},
        AttentionCase{"dropout", 2, 2,
                      RANDOM "causal scale 0.5 dropout \"a\" rate 0.3"},
        AttentionCase{"everything", 4, 2,
                      RANDOM
                      "causal scale 0.5 cap 0.8 window 3 dropout \"a\" rate "
                      "0.2"}),
    [](const auto &info) { return std::string(info.param.name); });

class Heads : public testing::TestWithParam<const char *> {};
TEST_P(Heads, MatchFiniteDifferences) {
  Program program(std::string(R"(
    func.func @f(%h: tensor<2x3x4xf32, #bse>, %w: tensor<6x4xf32, #ve>, %t: tensor<2x3xi32, #bs>) -> tensor<f32> {
      %0 = transformer.head_loss %h, %w, %t scale 0.25)") +
                  GetParam() +
                  R"( : tensor<2x3x4xf32, #bse>, tensor<6x4xf32, #ve>,
          tensor<2x3xi32, #bs> -> tensor<f32>
      return %0 : tensor<f32>
    })");
  checkGradient(program,
                {randomTensor({2, 3, 4}, 1), randomTensor({6, 4}, 2),
                 Tensor({2, 3}, std::vector<double>{0, 5, 2, 2, 4, 0})});
}
INSTANTIATE_TEST_SUITE_P(Caps, Heads, testing::Values("", " cap 0.7"));

} // namespace
