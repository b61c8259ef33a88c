// Step ops: what is kept between runs, and scalars from the launcher.
#include "Harness.h"

using namespace meshwork::interpreter;
using meshwork::transformer::StateKind;
using meshwork::transformer::StepInput;

namespace {

using Elements = std::vector<double>;
Elements elementsOf(const Tensor &tensor) { return tensor.getElements().vec(); }

TEST(State, IsReadAssignedAndKept) {
  Program program(R"(
    func.func @f(%x: tensor<2xf32, #e>) -> tensor<2xf32, #e> {
      %old = transformer.state optimizer "w" slot "moment" : tensor<2xf32, #e>
      transformer.assign optimizer "w" slot "moment", %x : tensor<2xf32, #e>
      return %old : tensor<2xf32, #e>
    })");
  program.interpreter.state[{StateKind::optimizer, "w", "moment"}] =
      Tensor({2}, Elements{1, 2});
  EXPECT_EQ(elementsOf(program.run({Tensor({2}, Elements{3, 4})})[0]),
            Elements({1, 2}));
  EXPECT_EQ(elementsOf(program.run({Tensor({2}, Elements{5, 6})})[0]),
            Elements({3, 4}));
}

TEST(State, AccumulatesFromZeroInEachStep) {
  Program program(R"(
    func.func @f(%x: tensor<2xf32, #e>) -> tensor<2xf32, #e> {
      transformer.accumulate gradient "w", %x : tensor<2xf32, #e>
      transformer.accumulate gradient "w", %x : tensor<2xf32, #e>
      %sum = transformer.state gradient "w" : tensor<2xf32, #e>
      return %sum : tensor<2xf32, #e>
    })");
  Tensor x({2}, Elements{1, -2});
  EXPECT_EQ(elementsOf(program.run({x})[0]), Elements({2, -4}));
  EXPECT_EQ(elementsOf(program.run({x})[0]), Elements({4, -8}));
  program.interpreter.state[{StateKind::optimizer, "w", "moment"}] = x;
  program.interpreter.startStep();
  EXPECT_EQ(program.interpreter.state.size(), 1u) << "moments stay";
  EXPECT_EQ(elementsOf(program.run({x})[0]), Elements({2, -4}));
}

TEST(State, GradientsAndLossReadAsZeroBeforeTheFirstPart) {
  Program program(R"(
    func.func @f() -> (tensor<2xf32, #e>, tensor<f32>) {
      %g = transformer.state gradient "w" : tensor<2xf32, #e>
      %l = transformer.state loss "" : tensor<f32>
      return %g, %l : tensor<2xf32, #e>, tensor<f32>
    })");
  auto results = program.run({});
  EXPECT_EQ(elementsOf(results[0]), Elements({0, 0}));
  EXPECT_EQ(elementsOf(results[1]), Elements({0}));
}

TEST(State, RangesAreWrittenInPlace) {
  Program program(R"(
    func.func @f(%x: tensor<2x2xf32, #se>, %y: tensor<2xf32, #e>) -> tensor<4x2xf32, #ve> {
      %old = transformer.state gradient "w" : tensor<4x2xf32, #ve>
      transformer.assign gradient "w" dim "vocab" offset 1, %x : tensor<2x2xf32, #se>
      transformer.assign gradient "w" dim "vocab" offset 3, %y : tensor<2xf32, #e>
      %new = transformer.state gradient "w" : tensor<4x2xf32, #ve>
      return %new : tensor<4x2xf32, #ve>
    })");
  Tensor x({2, 2}, Elements{1, 2, 3, 4}), y({2}, Elements{5, 6});
  EXPECT_EQ(elementsOf(program.run({x, y})[0]),
            Elements({0, 0, 1, 2, 3, 4, 5, 6}));
}

TEST(State, ParametersAreWeightsOrElseMasters) {
  Program program(R"(
    func.func @f() -> tensor<2xf32, #e> {
      %w = transformer.parameter "w" init <normal, 0.0, 1.0> : tensor<2xf32, #e>
      return %w : tensor<2xf32, #e>
    })");
  program.interpreter.state[{StateKind::master, "w"}] =
      Tensor({2}, Elements{1, 2});
  EXPECT_EQ(elementsOf(program.run({})[0]), Elements({1, 2}));
  program.interpreter.state[{StateKind::weight, "w"}] =
      Tensor({2}, Elements{3, 4});
  EXPECT_EQ(elementsOf(program.run({})[0]), Elements({3, 4}));
}

TEST(State, StepInputsAreScalars) {
  Program program(R"(
    func.func @f() -> tensor<f32> {
      %lr = transformer.step_input learning_rate : tensor<f32>
      return %lr : tensor<f32>
    })");
  program.interpreter.inputs[StepInput::learning_rate] = 0.125;
  EXPECT_EQ(program.run({})[0][0], 0.125);
}

TEST(State, BiasCorrectionsCountStepsFromOne) {
  Program program(R"(
    func.func @f() -> tensor<f32> {
      %c = transformer.step_input bias_correction base 0.5 : tensor<f32>
      return %c : tensor<f32>
    })");
  program.interpreter.inputs[StepInput::step] = 2;
  EXPECT_EQ(program.run({})[0][0], 0.875);
}

/// Axis y is the inner one: ranks 0 and 1 differ in y, 0 and 2 in x.
TEST(Ranks, AllReduceAddsAlongTheNamedAxes) {
  Program program(R"(
    module attributes {mesh.mesh = #mesh.mesh<"x"=2, "y"=2>} {
      func.func @f(%a: tensor<1xf32, #e>) -> (tensor<1xf32, #e>, tensor<1xf32, #e>, tensor<1xf32, #e>) {
        %x = mesh.all_reduce %a sum over ["x"] cause "test" : tensor<1xf32, #e> -> tensor<1xf32, #e>
        %y = mesh.all_reduce %a sum over ["y"] cause "test" : tensor<1xf32, #e> -> tensor<1xf32, #e>
        %xy = mesh.all_reduce %a sum over ["x", "y"] cause "test" : tensor<1xf32, #e> -> tensor<1xf32, #e>
        return %x, %y, %xy : tensor<1xf32, #e>, tensor<1xf32, #e>, tensor<1xf32, #e>
      }
    })");
  std::vector<Interpreter> ranks(4);
  std::vector<mlir::SmallVector<Tensor>> arguments;
  for (double value : {1, 10, 100, 1000})
    arguments.push_back({Tensor({1}, value)});
  auto results = runRanks(program.function(), ranks, arguments);
  ASSERT_TRUE(succeeded(results)) << program.diagnostics;
  double alongX[] = {101, 1010, 101, 1010}, alongY[] = {11, 11, 1100, 1100};
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ((*results)[rank][0][0], alongX[rank]);
    EXPECT_EQ((*results)[rank][1][0], alongY[rank]);
    EXPECT_EQ((*results)[rank][2][0], 1111);
  }
  EXPECT_TRUE(
      failed(program.interpreter.run(program.function(), arguments[0])));
  EXPECT_NE(program.diagnostics.find("on a mesh of 4 ranks, but 1 run"),
            std::string::npos)
      << program.diagnostics;
}

} // namespace
