#include "passes/verify/Reference.h"

#include "dialects/transformer/Facts.h"
#include "passes/interpreter/Interpreter.h"

using namespace mlir;
namespace meshwork::verify {
using interpreter::Interpreter;
using interpreter::StateKey;
using interpreter::Tensor;
using transformer::StateKind;
using transformer::StepInput;

/// Weights that travel in 8 bits are rounded, which changes numbers: also where
/// there is one rank to share them.
static void keepWeightTypes(spec::WeightType weights, spec::Spec &alone) {
  const std::string axis = "dp";
  alone.mesh = {{axis, 1}};
  for (spec::ShardRule &rule : alone.shard)
    if (rule.dim == "batch")
      rule.axes = {axis};
  alone.zero.stage = 3;
  alone.zero.axes = {axis};
  alone.zero.weights = weights;
}

spec::Spec oneRankOf(const spec::Spec &spec) {
  spec::Spec alone = spec;
  alone.mesh.clear();
  for (spec::ShardRule &rule : alone.shard)
    rule.axes.clear();
  alone.pins.clear();
  alone.sequenceLayout = layout::DimLayout::block;
  alone.context = spec::Context::byCost;
  alone.contextOfAxis.clear();
  alone.pipeline = {};
  alone.zero = {};
  if (spec.zero.weights != spec::WeightType::compute)
    keepWeightTypes(spec.zero.weights, alone);
  alone.batch.micro = spec.batch.global / spec.microbatches();
  alone.collectives.clear();
  alone.memoryPerRankBytes.reset();
  alone.recompute = spec::Recompute::none;
  alone.epilogues = spec::When::never;
  return alone;
}

namespace {
void setInitialStates(ModuleOp module, Interpreter &one) {
  module.walk([&](transformer::ParameterOp op) {
    std::string name = op.getName().str();
    Tensor weight = initialState({name, "weight"}, op.getWholeShape().vec());
    one.state[{StateKind::weight, name}] = weight;
    one.state[{StateKind::master, name}] = weight;
  });
  module.walk([&](transformer::StateOp op) {
    transformer::StateKey key = op.getKey();
    if (key.kind == StateKind::optimizer)
      one.state[key] =
          initialState({key.name.str(), key.role().str()},
                       cast<RankedTensorType>(op.getType()).getShape().vec());
  });
}

FailureOr<Tensor> argumentOf(BlockArgument argument, const StepData &data,
                             int64_t first, int64_t count) {
  StringRef input = transformer::inputOf(argument);
  for (plan::InputKind kind : plan::EnumValuesInputKind()) {
    if (input != plan::EnumNameInputKind(kind))
      continue;
    if (std::optional<Tensor> value = data.input(kind, first, count))
      return *value;
  }
  return emitError(argument.getLoc())
         << "the step has an input '" << input << "' that nothing gives";
}

LogicalResult runMicrobatch(func::FuncOp function, const StepData &data,
                            int64_t first, int64_t count, Interpreter &one) {
  one.inputs[StepInput::first_sample] = static_cast<double>(first);
  SmallVector<Tensor> arguments;
  for (BlockArgument argument : function.getArguments()) {
    FailureOr<Tensor> value = argumentOf(argument, data, first, count);
    if (failed(value))
      return failure();
    arguments.push_back(std::move(*value));
  }
  return one.run(function, arguments);
}

StepEnd endOf(const Interpreter &one) {
  StepEnd end;
  for (const auto &[key, value] : one.state) {
    StringRef role = transformer::StateKey{key.kind, key.name, key.slot}.role();
    if (key.kind == StateKind::loss)
      end.loss = value[0];
    else if (key.kind == StateKind::grad_norm)
      end.gradNorm = value[0];
    else if (key.kind == StateKind::metric)
      end.metrics.emplace(key.name, value);
    else
      end.states[{key.name, role.str()}] = value;
  }
  return end;
}
} // namespace

FailureOr<StepEnd> runReference(ModuleOp module, const StepData &data,
                                int64_t microbatches) {
  Interpreter one;
  one.inputs = {{StepInput::seed, data.seed},
                {StepInput::step, data.step},
                {StepInput::learning_rate, data.learningRate}};
  setInitialStates(module, one);
  auto microbatch = module.lookupSymbol<func::FuncOp>("microbatch"),
       update = module.lookupSymbol<func::FuncOp>("update");
  int64_t count = data.samples() / microbatches;
  for (int64_t m = 0; m < microbatches; ++m)
    if (failed(runMicrobatch(microbatch, data, m * count, count, one)))
      return failure();
  if (failed(one.run(update, {})))
    return failure();
  return endOf(one);
}

} // namespace meshwork::verify
