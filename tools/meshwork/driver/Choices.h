// What the compiler chooses for a spec, by compiling copies.
#pragma once

#include "tools/meshwork/driver/Trial.h"
#include "tools/meshwork/driver/search/Autos.h"

namespace meshwork::driver {

/// Puts into `spec` what is chosen just before the phase of this name, for
/// `module` as the phase before leaves it; each where the spec says "auto".
/// Before "step" that is `context.method`, before "shard" `experts.exchange`,
/// `zero.gathered` and `zero.reduce`. Before "pipeline" it is its layers, and
/// what its schedule goes by; before "recompute" a policy for each layer. Where
/// layers differ in `experts.exchange`, their ops say it and the spec stays.
/// What was chosen is added to `said`. Where that took a copy through all
/// phases that are left, as the plan has it, it is put into `finished`. Fails
/// when a copy does not compile.
mlir::LogicalResult chooseBefore(llvm::StringRef phase, mlir::ModuleOp module,
                                 spec::Spec &spec, Said &said,
                                 mlir::OwningOpRef<mlir::ModuleOp> &finished);
mlir::LogicalResult chooseBefore(llvm::StringRef phase, mlir::ModuleOp module,
                                 spec::Spec &spec, Said &said);

/// Whether something may be chosen before the phase of this name.
bool choosesBefore(llvm::StringRef phase, const spec::Spec &spec);

/// What the plan would be: runs the phases on `module`, from the one named
/// `first` on, with what is "auto" chosen on the way. Fails where compiling
/// does.
mlir::FailureOr<Trial> tryChoosing(mlir::ModuleOp module, spec::Spec spec,
                                   llvm::StringRef first);

} // namespace meshwork::driver
