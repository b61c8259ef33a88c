// A compiled step run on all ranks and compared with one rank.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/verify/States.h"

namespace meshwork::verify {

/// Where buffers lie: at the plan's offsets, or each in bytes of its own, so
/// that a mistake of the arena shows as a difference between the two.
enum class Places { arena, apart };

/// No problems when all ranks together mean what one rank means. `module` has
/// gone through the phase `memory` for `spec`. A plan that cannot be run to its
/// end has one problem: see Machine.h. Fails with a
/// diagnostic when no plan can be made of it.
mlir::FailureOr<Findings> runPlan(mlir::ModuleOp module, const spec::Spec &spec,
                                  uint32_t vocabulary, const StepData &data,
                                  const StepEnd &expected,
                                  Places places = Places::arena,
                                  double tolerance = 1e-9);

} // namespace meshwork::verify
