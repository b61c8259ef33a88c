// `experts.exchange = "auto"`.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::driver {

/// How tokens reach the experts of some layers, all of equal sizes; what a step
/// should take either way, where the spec allows it.
struct ExchangeOfLayers {
  std::vector<int64_t> layers; // -1: of no layer
  spec::Exchange exchange = spec::Exchange::gathered;
  std::optional<double> gatheredSeconds, allToAllSeconds;
};

/// How tokens of each layer of `module`, as phase `step` leaves it, reach their
/// experts in least time. All start gathered; form by form is tried exchanged,
/// with those before as they were chosen. Compiles the rest of the phases on
/// copies, one more than there are forms; fails where one has a fault. Nothing
/// of a model without experts.
mlir::FailureOr<std::vector<ExchangeOfLayers>>
fitExperts(mlir::ModuleOp module, const spec::Spec &spec);

/// Has layers of `module`, as phase `step` leaves it, exchange tokens, with so
/// many slots (`experts.bound`); for a spec that says "auto".
void exchangeTokens(mlir::ModuleOp module,
                    llvm::ArrayRef<ExchangeOfLayers> choices, double bound);

} // namespace meshwork::driver
