// Compiles a copy as far as its sizes, without code.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::driver {

/// What a rank needs, and what a step should take on the spec's machine.
struct Trial {
  uint64_t bytes = 0;
  double seconds = 0;
};

/// Runs the phases on `module`, from the one named `first` to the last. Fails
/// when a phase does.
mlir::FailureOr<Trial> tryPhases(mlir::ModuleOp module, const spec::Spec &spec,
                                 llvm::StringRef first);

} // namespace meshwork::driver
