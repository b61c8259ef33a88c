// Phases on a model with few layers, which the others are made of. For what is
// asked for sizes and times alone: what a plan says of values (explain VALUE)
// is told of those that are there.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::driver {

/// The first phase of those that go by one layer after the other.
inline constexpr llvm::StringLiteral firstFolded = "step";

/// Runs these phases on `module` and returns the last one, "fuse" or
/// "partition". It changes nothing and returns "" if the model has no equal
/// layers, if the spec or a phase tells them apart, or if a phase has something
/// to say. All phases must then run on all layers.
llvm::StringRef runFolded(mlir::ModuleOp module, const spec::Spec &spec);

/// For a loop over phases: which of them have run on few layers.
class FewLayers {
public:
  /// Whether `phase` has run.
  bool haveRun(llvm::StringRef phase);
  /// The same; at the first of them it runs them, if it can.
  bool run(llvm::StringRef phase, mlir::ModuleOp module,
           const spec::Spec &spec);

private:
  llvm::StringRef last; // "" where none has, and behind it
};

} // namespace meshwork::driver
