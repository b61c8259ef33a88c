// `experts.exchange = "auto"`.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::driver {

/// Seconds of a step with tokens gathered, and exchanged; nothing where the
/// spec does not allow it.
struct ExchangeTimes {
  std::optional<double> gathered, allToAll;

  spec::Exchange best() const;
};

/// Of a step of `module`, as phase `step` leaves it. Compiles the rest of the
/// phases on copies; fails where one has a fault. Nothing of a model without
/// experts.
mlir::FailureOr<ExchangeTimes> fitExperts(mlir::ModuleOp module,
                                          spec::Spec spec);

} // namespace meshwork::driver
