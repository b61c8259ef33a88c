// `recompute.policy = "auto"`.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::driver {

/// The policies, one for each layer, that compute least again while `module`,
/// as phase `partition` leaves it, needs at most cost::memoryLimit(spec). All
/// "full" when nothing fits. Later layers are the first to keep more, since
/// what they keep is freed first. Compiles the rest of the phases a few times
/// on copies, so the sizes are those of the plan. Fails when a phase does.
mlir::FailureOr<std::vector<spec::Recompute>>
fitRecompute(mlir::ModuleOp module, const spec::Spec &spec);

} // namespace meshwork::driver
