// @loss, for passes that give it inputs.
#pragma once

#include "dialects/transformer/StepFunctions.h"
#include <limits>

namespace meshwork::transform {

/// The function @loss of tokens, targets and perhaps more inputs, at most
/// `most` in all; null, and an error, where the module has none.
inline mlir::func::FuncOp
lossOf(mlir::ModuleOp module,
       unsigned most = std::numeric_limits<unsigned>::max()) {
  auto loss = transformer::functionOf(module, transformer::StepFunction::loss);
  if (loss && loss.getNumArguments() >= 2 && loss.getNumArguments() <= most)
    return loss;
  module.emitError() << "expected a function @loss of tokens and targets";
  return {};
}

} // namespace meshwork::transform
