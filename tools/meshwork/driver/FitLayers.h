// `pipeline.layers = "auto"` where there is a limit of memory.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace meshwork::driver {

/// Chooses the layers of each stage where balanced ones need more than
/// cost::memoryLimit(spec), and puts them into spec.pipeline.fittedLayers.
/// `module` is as phase `partition` leaves it. Of the layouts that fit, takes
/// the one with the least work in its slowest stage. Where none fits, takes the
/// one that needs least, even if that is the balanced one. Each is compiled,
/// without code. Nothing changes where the balanced layout fits, or is the only
/// one, or layers are given or fitted before.
///
/// Other choices that fit by themselves come first as long as they are cheap.
/// Layers move only where "selective" recompute and a schedule that keeps what
/// it likes need too much. Full recompute, or a schedule that keeps as little
/// as can be, may then fit another layout. Of the two, the layout whose step
/// should take less time is chosen.
///
/// Where the balanced layout fits and nothing else is left to choose,
/// `finished` gets what the phases have left of it, so that they need not run
/// again.
///
/// Fails when a phase does.
mlir::LogicalResult fitLayers(mlir::ModuleOp module, spec::Spec &spec,
                              mlir::OwningOpRef<mlir::ModuleOp> &finished);

} // namespace meshwork::driver
