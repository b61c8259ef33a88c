// How ops become instructions: each has a model of LowerOpInterface, and one
// without is an error when it is lowered.
//
//   DialectRegistry registry;
//   registerLowerings(registry);
//   if (auto lowered = dyn_cast<LowerOpInterface>(op))
//     result = lowered.lower(to);
#pragma once

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"

namespace meshwork::schedule {

struct Lowering;

/// To the dialects transformer and mesh, and func's return, as soon as all are
/// loaded. -schedule-lower does it.
void registerLowerings(::mlir::DialectRegistry &registry);

/// Whether its result is a part of its operand, and lies there if it can.
bool isViewOfOperand(::mlir::Operation *op);

} // namespace meshwork::schedule

#include "passes/schedule/LowerInterface.h.inc"
