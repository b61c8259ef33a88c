// Which ops passes ask for what they are. All others must be named here.
#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/schedule/LoweringModels.h"
#include "gtest/gtest.h"

using namespace mlir;
namespace meshwork::transformer {
namespace {

std::set<std::string>
opsWithout(function_ref<bool(RegisteredOperationName)> asks) {
  DialectRegistry registry;
  schedule::registerLowerings(registry);
  MLIRContext context(registry);
  context
      .loadDialect<TransformerDialect, mesh::MeshDialect, func::FuncDialect>();
  std::set<std::string> names;
  for (RegisteredOperationName op : context.getRegisteredOperations())
    if (isa<TransformerDialect, mesh::MeshDialect>(op.getDialect()) &&
        !op.hasInterface<DecomposableOpInterface>() && !asks(op))
      names.insert(op.getStringRef().str());
  return names;
}

TEST(Answers, allOpsOfAStepAreAsked) {
  EXPECT_EQ(
      opsWithout([](RegisteredOperationName op) {
        return op.hasInterface<TensorOpInterface>();
      }),
      (std::set<std::string>{
          // of bodies
          "transformer.yield", "transformer.index", "transformer.dropout_mask",
          "transformer.stochastic_round",
          // gone before anyone asks, or made later
          "transformer.head_loss", "transformer.auxiliary_loss",
          "transformer.fused", "transformer.product", "transformer.repeat",
          // computes nothing
          "transformer.stage_list"}));
}

TEST(Answers, computingOpsHaveFactors) {
  EXPECT_EQ(
      opsWithout([](RegisteredOperationName op) {
        return !op.hasInterface<TensorOpInterface>() ||
               op.hasInterface<FactorOpInterface>() ||
               isa<mesh::MeshDialect>(op.getDialect());
      }),
      (std::set<std::string>{"transformer.parameter", "transformer.step_input",
                             "transformer.state", "transformer.assign",
                             "transformer.accumulate"}));
}

TEST(Answers, opsThatAreLeftBecomeInstructions) {
  EXPECT_EQ(
      opsWithout([](RegisteredOperationName op) {
        return op.hasInterface<schedule::LowerOpInterface>();
      }),
      (std::set<std::string>{
          // of bodies
          "transformer.yield", "transformer.index", "transformer.dropout_mask",
          "transformer.stochastic_round",
          // what passes put into others, or replace
          "transformer.map", "transformer.reduce", "transformer.roll",
          "transformer.auxiliary_loss", "transformer.head_loss",
          "transformer.head_loss_grad", "mesh.reshard", "transformer.experts",
          "transformer.experts_grad", "transformer.expert_rounds",
          // says which list begins
          "transformer.stage_list"}));
}

} // namespace
} // namespace meshwork::transformer
