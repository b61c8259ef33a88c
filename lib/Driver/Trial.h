// Compiles a copy as far as its sizes, without code.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::driver {

/// Runs the phases on `module`, from the one named `first` to the last, and
/// returns what a rank then needs, in bytes. Fails when a phase does.
mlir::FailureOr<uint64_t> peakAfterPhases(mlir::ModuleOp module,
                                          const spec::Spec &spec,
                                          llvm::StringRef first);

} // namespace meshwork::driver
