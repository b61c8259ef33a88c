// The phases of a compilation, in order. Each ends with a gate that changes
// nothing and reports what should no longer be there.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringRef.h"

namespace meshwork::pipelines {

struct Phase {
  llvm::StringLiteral name;
  llvm::StringLiteral summary;
  void (*build)(mlir::OpPassManager &passes, const spec::Spec &spec);
  bool isVerified; // by its gate
  /// What comes before it where equal ranks are folded; may be null.
  void (*fold)(mlir::OpPassManager &passes, const spec::Spec &spec) = nullptr;
};

/// input, step, shard, partition, pipeline, recompute, fuse, schedule, memory.
llvm::ArrayRef<Phase> phases();

/// Changes nothing; fails when something stands in the module that `phase`
/// should have removed, or when the module does not verify.
///
///   verifies  whether it looks at all that ops say, after phases that ask for
///             it, and not only for what is left
std::unique_ptr<mlir::Pass> createGatePass(llvm::StringRef phase = "",
                                           bool verifies = true);

/// The passes of `phase` and its gate, which alone verifies. To verify after
/// each pass, as `meshwork-opt` does, took a quarter of the compile time of a
/// large model.
///
///   folds  whether ranks of a pipeline that are equal but for names go as one
///          through the phases from recompute to schedule. `memory` finds each
///          rank again. For callers that run all of these phases
///   verifies  whether its gate does; without it, what a fault of a pass has
///             left is not found
void addPhase(mlir::PassManager &passes, const Phase &phase,
              const spec::Spec &spec, bool folds = false, bool verifies = true);

/// Loads every dialect that a model or a phase may use.
void registerDialects(mlir::DialectRegistry &registry);
/// Every pass, and each phase as a pipeline `meshwork-<phase>` with the options
/// `spec` (a file) and `set` (overrides).
void registerPassesAndPipelines();

} // namespace meshwork::pipelines
