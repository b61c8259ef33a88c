// `pipeline.schedule = "auto"`.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::driver {

/// Puts into spec.pipeline what the search for a schedule goes by, for `module`
/// as phase `partition` leaves it. That is what the actions of each stage take
/// on the spec's machine, found by compiling a copy. For a spec with
/// cost::memoryLimit(spec), it is also how many microbatches a rank may keep,
/// so that the plan fits. The smallest number when nothing fits. Of other
/// schedules, and without stages, nothing changes. Fails when a phase does.
mlir::LogicalResult fitSchedule(mlir::ModuleOp module, spec::Spec &spec);

} // namespace meshwork::driver
