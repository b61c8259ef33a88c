// `context.method = "auto"`.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::driver {

/// The method with which a step of `module`, as phase `step` leaves it, should
/// take least time on the spec's machine. It is "gathered" on a tie, where
/// the spec allows none, and without attention. Compiles the rest of the
/// phases on copies; fails where one has a fault. The spec splits the sequence.
mlir::FailureOr<spec::Context> fitContext(mlir::ModuleOp module,
                                          const spec::Spec &spec);

} // namespace meshwork::driver
