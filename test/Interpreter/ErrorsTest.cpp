// What cannot be interpreted is said at the op, with what was found and
// expected.
#include "Harness.h"

using namespace meshwork::interpreter;
using meshwork::transformer::StateKind;

namespace {

void expectFailure(const std::string &text, mlir::ArrayRef<Tensor> arguments,
                   const std::string &message,
                   std::map<StateKey, Tensor> state = {}) {
  Program program(text);
  program.interpreter.state = std::move(state);
  EXPECT_TRUE(failed(program.interpreter.run(program.function(), arguments)));
  EXPECT_NE(program.diagnostics.find(message), std::string::npos)
      << program.diagnostics;
}

TEST(Errors, Arguments) {
  std::string text = "func.func @f(%a: tensor<2xf32, #e>) -> tensor<2xf32, #e> "
                     "{ return %a : tensor<2xf32, #e> }";
  expectFailure(text, {}, "takes 1 arguments, found 0");
  expectFailure(text, {Tensor({3})}, "argument #0 has shape [3], expected [2]");
}

TEST(Errors, Sizes) {
  expectFailure("func.func @f(%a: tensor<?xf32, #e>) { return }", {Tensor({3})},
                "bind the model first");
  expectFailure("func.func @f(%a: tensor<0xf32>) { return }", {Tensor({0})},
                "has no elements");
  expectFailure(R"(func.func @f() {
      %a = transformer.parameter "a" init <constant, 1.0> : tensor<99999999x99999999xf32, #se>
      return
    })",
                {}, "elements that can be interpreted");
}

TEST(Errors, State) {
  std::string text = R"(func.func @f() {
      %a = transformer.state optimizer "w" slot "moment" : tensor<2xf32, #e>
      return
    })";
  expectFailure(text, {}, "reads moment of \"w\", which has no value");
  expectFailure(text, {}, "whose shape is [3], expected [2]",
                {{{StateKind::optimizer, "w", "moment"}, Tensor({3})}});
  expectFailure(R"(func.func @f() {
      %a = transformer.step_input seed : tensor<i32>
      return
    })",
                {}, "reads step input seed, which has no value");
  expectFailure(R"(func.func @f(%a: tensor<2xf32, #e>) {
      transformer.accumulate gradient "w", %a : tensor<2xf32, #e>
      return
    })",
                {Tensor({2})}, "whose shape is [3], expected [2]",
                {{{StateKind::gradient, "w"}, Tensor({3})}});
}

TEST(Errors, Ranges) {
  expectFailure(R"(func.func @f(%a: tensor<2xf32, #e>) {
      transformer.assign gradient "w" dim "vocab" offset 1, %a : tensor<2xf32, #e>
      return
    })",
                {Tensor({2})}, "which no `state` in this function reads");
  for (const char *offset : {"3", "-1"})
    expectFailure(R"(func.func @f(%a: tensor<2xf32, #e>) {
        %old = transformer.state gradient "w" : tensor<3x2xf32, #ve>
        transformer.assign gradient "w" dim "vocab" offset )" +
                      std::string(offset) + R"(, %a : tensor<2xf32, #e>
        return
      })",
                  {Tensor({2})}, "which is not within");
}

TEST(Errors, Ids) {
  for (double id : {3.0, -1.0}) {
    expectFailure(
        R"(func.func @f(%t: tensor<3x2xf32, #ve>, %i: tensor<1xi32, #s>) {
        %0 = transformer.embedding %t, %i : tensor<3x2xf32, #ve>, tensor<1xi32, #s> -> tensor<1x2xf32, #se>
        return
      })",
        {Tensor({3, 2}), Tensor({1}, id)}, "is outside the table of 3 rows");
    expectFailure(
        R"(func.func @f(%h: tensor<1x2xf32, #se>, %w: tensor<3x2xf32, #ve>, %t: tensor<1xi32, #s>) {
        %0 = transformer.head_loss %h, %w, %t scale 1.0 : tensor<1x2xf32, #se>, tensor<3x2xf32, #ve>, tensor<1xi32, #s> -> tensor<f32>
        return
      })",
        {Tensor({1, 2}), Tensor({3, 2}), Tensor({1}, id)},
        "is outside the vocabulary of 3");
  }
}

TEST(Errors, OpsOfOtherDialects) {
  expectFailure(R"(func.func @f(%a: tensor<2xf32, #e>) {
      %0 = math.exp %a : tensor<2xf32, #e>
      return
    })",
                {Tensor({2})}, "cannot be interpreted");
  expectFailure(R"(func.func @f(%a: tensor<2xf32, #e>) {
      %0 = transformer.map ins(%a : tensor<2xf32, #e>) -> tensor<2xf32, #e> {
      ^bb0(%x: f32):
        %r = math.sin %x : f32
        transformer.yield %r : f32
      }
      return
    })",
                {Tensor({2})}, "cannot be evaluated in a map body");
  expectFailure("func.func private @f()", {}, "expected a body of one block");
}

} // namespace
