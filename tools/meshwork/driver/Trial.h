// Compiles a copy as far as its sizes, without code.
#pragma once

#include "lib/Schedules/Table.h"
#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

#include <optional>
#include <vector>

namespace meshwork::driver {

/// What a rank needs, and what a step should take on the spec's machine: what
/// `explain` says of the plan.
struct Trial {
  uint64_t bytes = 0;     // of the rank that needs most
  uint64_t hostBytes = 0; // of the host's memory
  double seconds = 0;
  /// By coordinate along the pipeline's axis, or of the one program.
  std::vector<uint64_t> bytesOfRanks = {};
  /// The coordinate that holds each virtual stage; with one stage empty.
  std::vector<int32_t> rankOf = {};
  /// Of a pipeline: seconds of its stages' actions, and the most microbatches
  /// that a rank keeps, counted in virtual stages.
  schedules::Costs costs = {};
  int32_t kept = 0;
};

/// While it lives, trials say nothing. A trial that fails by an error of the
/// spec (passes/analysis/SpecKey.h) is refused: that choice is left out. If it
/// fails by anything else, that is a fault of the compiler.
class QuietTrials {
public:
  explicit QuietTrials(mlir::MLIRContext *context);
  bool areRefused() const { return refused; }
  /// The first error that was kept back: of the spec, with its key in front,
  /// where there is one of it. Empty: none.
  std::string firstError() const;
  /// Says what was kept back.
  void tell();

private:
  mlir::MLIRContext *context;
  std::vector<mlir::Diagnostic> kept;
  bool refused = false;
  std::optional<mlir::ScopedDiagnosticHandler> handler;
};

/// Runs the phases on `module`, from the one named `first` to the last. Where
/// recompute goes by the budget and is not chosen yet, it is selective. Fails
/// when a phase does.
mlir::FailureOr<Trial> tryPhases(mlir::ModuleOp module, spec::Spec spec,
                                 llvm::StringRef first);

/// Runs one phase on `module`, as tryPhases() does, and checks what it leaves;
/// without `verifies` only its sizes.
mlir::LogicalResult runPhase(mlir::ModuleOp module, const spec::Spec &spec,
                             llvm::StringRef name, bool verifies = true);

} // namespace meshwork::driver
