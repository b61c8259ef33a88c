// One number a list that says whether some exchange of it needs a further
// round, in place of one a layer.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace meshwork::transform {

/// Has the forward pass of `microbatch` run with one round of each exchange,
/// its narrow form. Behind it a repeat of at most one turn runs it again with
/// all rounds, the wide form; what is accumulated stands behind that. Returns
/// what counts the turn: 1 where any rank that meets in the wide form needs a
/// further round anywhere, 0 else. `expert_rounds` of the wide form are left to
/// expand. Null, and nothing changes, where that saves no number, or where the
/// pass has lists of stages or effects that cannot run twice.
mlir::Value runNarrowFirst(mlir::func::FuncOp microbatch);

} // namespace meshwork::transform
