// Gradients of map: one test for each rule of its scalar body, then broadcasts
// and several results.
#include "Harness.h"

using namespace meshwork::interpreter;

namespace {

struct ScalarRule {
  const char *name;
  const char *body; // of %x, %y : f32; defines %r
  double low = -1, high = 1;
};
void PrintTo(const ScalarRule &rule, std::ostream *os) { *os << rule.name; }

class ScalarRules : public testing::TestWithParam<ScalarRule> {};

TEST_P(ScalarRules, MatchFiniteDifferences) {
  Program program(R"(
    func.func @f(%a: tensor<3x4xf32, #se>, %b: tensor<3x4xf32, #se>) -> tensor<3x4xf32, #se> {
      %0 = transformer.map ins(%a, %b : tensor<3x4xf32, #se>, tensor<3x4xf32, #se>) -> tensor<3x4xf32, #se> {
      ^bb0(%x: f32, %y: f32):
        %zero = arith.constant 0.0 : f32
        )" + std::string(GetParam().body) +
                  R"(
        %both = arith.mulf %r, %y : f32
        transformer.yield %both : f32
      }
      return %0 : tensor<3x4xf32, #se>
    })");
  double low = GetParam().low, high = GetParam().high;
  checkGradient(program, {randomTensor({3, 4}, 1, low, high),
                          randomTensor({3, 4}, 2, 0.5, 1.5)});
}

INSTANTIATE_TEST_SUITE_P(
    Rules, ScalarRules,
    testing::Values(
        ScalarRule{"addf", "%r = arith.addf %x, %y : f32"},
        ScalarRule{"subf", "%r = arith.subf %x, %y : f32"},
        ScalarRule{"mulf", "%r = arith.mulf %x, %y : f32"},
        ScalarRule{"mulf_square", "%r = arith.mulf %x, %x : f32"},
        ScalarRule{"divf", "%q = arith.divf %x, %y : f32\n"
                           "%r = math.exp %q : f32"},
        ScalarRule{"negf", "%r = arith.negf %x : f32"},
        ScalarRule{"exp", "%r = math.exp %x : f32"},
        ScalarRule{"log", "%r = math.log %x : f32", 0.5, 2},
        ScalarRule{"tanh", "%r = math.tanh %x : f32"},
        ScalarRule{"erf", "%r = math.erf %x : f32"},
        ScalarRule{"sqrt", "%r = math.sqrt %x : f32", 0.5, 2},
        ScalarRule{"rsqrt", "%r = math.rsqrt %x : f32", 0.5, 2},
        ScalarRule{"select", "%c = arith.cmpf ogt, %x, %zero : f32\n"
                             "%e = math.exp %x : f32\n"
                             "%r = arith.select %c, %e, %x : f32"},
        ScalarRule{"select_reversed", "%c = arith.cmpf ole, %x, %zero : f32\n"
                                      "%e = math.exp %x : f32\n"
                                      "%r = arith.select %c, %e, %x : f32"},
        ScalarRule{"index", "%i = transformer.index \"embed\" : i32\n"
                            "%p = arith.sitofp %i : i32 to f32\n"
                            "%r = arith.mulf %x, %p : f32"},
        ScalarRule{"reuse", "%e = math.exp %x : f32\n"
                            "%t = math.tanh %e : f32\n"
                            "%m = arith.mulf %e, %t : f32\n"
                            "%r = arith.addf %m, %e : f32"}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(MapGradient, SumsOverBroadcastDims) {
  Program program(R"(
    func.func @f(%a: tensor<2x3x4xf32, #bse>, %b: tensor<4xf32, #e>, %c: tensor<3xf32, #s>, %d: tensor<f32>)
        -> tensor<2x3x4xf32, #bse> {
      %0 = transformer.map ins(%a, %b, %c, %d : tensor<2x3x4xf32, #bse>, tensor<4xf32, #e>, tensor<3xf32, #s>, tensor<f32>)
          -> tensor<2x3x4xf32, #bse> {
      ^bb0(%x: f32, %y: f32, %z: f32, %w: f32):
        %p = arith.mulf %x, %y : f32
        %q = arith.mulf %z, %w : f32
        %t = math.tanh %q : f32
        %r = arith.mulf %p, %t : f32
        transformer.yield %r : f32
      }
      return %0 : tensor<2x3x4xf32, #bse>
    })");
  checkGradient(program, {randomTensor({2, 3, 4}, 1), randomTensor({4}, 2),
                          randomTensor({3}, 3), Tensor::scalar(0.7)});
}

TEST(MapGradient, AddsUpSeveralResultsAndRepeatedOperands) {
  Program program(R"(
    func.func @f(%a: tensor<3x4xf32, #se>, %b: tensor<4xf32, #e>) -> (tensor<3x4xf32, #se>, tensor<3x4xf32, #se>) {
      %0:2 = transformer.map ins(%a, %b, %a : tensor<3x4xf32, #se>, tensor<4xf32, #e>, tensor<3x4xf32, #se>)
          -> tensor<3x4xf32, #se>, tensor<3x4xf32, #se> {
      ^bb0(%x: f32, %y: f32, %z: f32):
        %p = arith.mulf %x, %y : f32
        %q = arith.divf %p, %z : f32
        %r = math.exp %z : f32
        %t = arith.addf %q, %r : f32
        transformer.yield %p, %t : f32, f32
      }
      return %0#0, %0#1 : tensor<3x4xf32, #se>, tensor<3x4xf32, #se>
    })");
  checkGradient(program,
                {randomTensor({3, 4}, 1, 0.5, 1.5), randomTensor({4}, 2)});
}

TEST(MapGradient, PassesThroughWhatIsOnlyCopied) {
  Program program(R"(
    func.func @f(%a: tensor<4xf32, #e>) -> tensor<3x4xf32, #se> {
      %0 = transformer.map ins(%a : tensor<4xf32, #e>) -> tensor<3x4xf32, #se> {
      ^bb0(%x: f32):
        transformer.yield %x : f32
      }
      return %0 : tensor<3x4xf32, #se>
    })");
  checkGradient(program, {randomTensor({4}, 1)});
}

TEST(MapGradient, MasksWhatDropoutDropped) {
  Program program(R"(
    func.func @f(%a: tensor<2x3x4xf32, #bse>, %seed: tensor<i32>) -> tensor<2x3x4xf32, #bse> {
      %0 = transformer.map ins(%a, %seed : tensor<2x3x4xf32, #bse>, tensor<i32>) -> tensor<2x3x4xf32, #bse> {
      ^bb0(%x: f32, %s: i32):
        %m = transformer.dropout_mask %s, %s, %s stream 7 rate 3.0e-1
        %e = math.exp %x : f32
        %r = arith.mulf %e, %m : f32
        transformer.yield %r : f32
      }
      return %0 : tensor<2x3x4xf32, #bse>
    })");
  checkGradient(program, {randomTensor({2, 3, 4}, 1), Tensor::scalar(5)});
}

TEST(MapGradient, RefusesOpsWithoutARule) {
  Program program(R"(
    func.func @f(%a: tensor<4xf32, #e>) -> tensor<4xf32, #e> {
      %0 = transformer.map ins(%a : tensor<4xf32, #e>) -> tensor<4xf32, #e> {
      ^bb0(%x: f32):
        %r = math.sin %x : f32
        transformer.yield %r : f32
      }
      return %0 : tensor<4xf32, #e>
    })");
  mlir::OpBuilder builder(program.module());
  auto map = *program.function().getOps<meshwork::transformer::MapOp>().begin();
  builder.setInsertionPointAfter(map);
  EXPECT_TRUE(failed(map.buildGradients(builder, map.getResult(0), {true})));
  EXPECT_NE(program.diagnostics.find("math.sin' op has no gradient rule"),
            std::string::npos)
      << program.diagnostics;
}

} // namespace
