// `pipeline.layers = "auto"` where there is a limit of memory.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace meshwork::driver {

/// Puts into spec.pipeline.fittedLayers which layers the stages of `module`, as
/// phase `partition` leaves it, have where balanced ones need more than
/// cost::memoryLimit(spec): of the layouts that fit, the one with the least
/// work in its slowest stage. Where none fits, the one that needs least, be it
/// the balanced one. Each is compiled, without code. Nothing changes where the
/// balanced layout fits, or is the only one, or layers are given or fitted
/// before.
///
/// Other choices that fit by themselves come first as long as they are cheap:
/// layers move only where "selective" recompute and a schedule that keeps what
/// it likes need too much. If then full recompute, or a schedule that keeps as
/// little as can be, fits another layout, the one of the two whose step should
/// take less time is chosen.
///
/// Where the balanced layout fits and nothing else is left to choose,
/// `finished` gets what the phases have left of it, so that they need not run
/// again.
///
/// Fails when a phase does.
mlir::LogicalResult fitLayers(mlir::ModuleOp module, spec::Spec &spec,
                              mlir::OwningOpRef<mlir::ModuleOp> &finished);

} // namespace meshwork::driver
