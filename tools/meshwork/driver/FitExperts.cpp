#include "tools/meshwork/driver/FitExperts.h"

#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/meshwork/driver/Trial.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

using Choices = std::vector<ExchangeOfLayers>;

func::FuncOp microbatchOf(ModuleOp module) {
  return transformer::functionOf(module, transformer::StepFunction::microbatch);
}

int64_t layerNumber(Operation *op) {
  return transformer::layerOf(op).value_or(-1);
}

/// Layers whose experts have equal operands and attributes, in their order.
Choices formsOf(ModuleOp module) {
  llvm::MapVector<std::pair<Attribute, Attribute>, ExchangeOfLayers> forms;
  microbatchOf(module).walk([&](transformer::ExpertsOp op) {
    auto operands =
        Builder(op).getTypeArrayAttr(llvm::to_vector(op->getOperandTypes()));
    forms[{operands, op->getPropertiesAsAttribute()}].layers.push_back(
        layerNumber(op));
  });
  Choices found;
  for (auto &[form, layers] : forms)
    found.push_back(layers);
  return found;
}

FailureOr<std::optional<double>>
secondsWith(ModuleOp module, const spec::Spec &spec, const Choices &choices) {
  OwningOpRef<ModuleOp> copy(module.clone());
  exchangeTokens(*copy, choices, spec.experts.bound);
  return trySeconds(*copy, spec, "shard");
}
} // namespace

FailureOr<Choices> fitExperts(ModuleOp module, const spec::Spec &spec) {
  Choices choices = formsOf(module);
  if (choices.empty())
    return choices;
  FailureOr<std::optional<double>> best = secondsWith(module, spec, choices);
  for (ExchangeOfLayers &choice : choices) {
    choice.exchange = spec::Exchange::allToAll;
    auto seconds = secondsWith(module, spec, choices);
    if (failed(best) || failed(seconds))
      return failure();
    choice.gatheredSeconds = *best;
    choice.allToAllSeconds = *seconds;
    if (*seconds && (!*best || **seconds < **best))
      best = seconds;
    else
      choice.exchange = spec::Exchange::gathered;
  }
  return choices;
}

void exchangeTokens(ModuleOp module, ArrayRef<ExchangeOfLayers> choices,
                    double bound) {
  FloatAttr slots = Builder(module.getContext()).getF64FloatAttr(bound);
  auto isExchanged = [&](Operation *op) {
    return llvm::any_of(choices, [&](const ExchangeOfLayers &some) {
      return some.exchange == spec::Exchange::allToAll &&
             llvm::is_contained(some.layers, layerNumber(op));
    });
  };
  microbatchOf(module).walk([&](Operation *op) {
    if (auto experts = dyn_cast<transformer::ExpertsOp>(op);
        experts && isExchanged(op))
      experts.setBoundAttr(slots);
    else if (auto grad = dyn_cast<transformer::ExpertsGradOp>(op);
             grad && isExchanged(op))
      grad.setBoundAttr(slots);
  });
}

} // namespace meshwork::driver
