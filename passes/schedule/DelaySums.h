// The sums over chunks of a layer's gradients run side by side.
#pragma once

#include "passes/schedule/Order.h"

namespace meshwork::schedule {

/// Moves launches of `block` that only add chunks to what stays in memory back
/// to the last one of their layer, or to the first instruction that touches
/// their bytes. The chunks of those that wait take `maxHeldBytes` at most.
/// `addsChunks` knows a launch's kernel.
void delaySums(::mlir::Block &block, const Uses &uses, int64_t maxHeldBytes,
               ::llvm::function_ref<bool(LaunchOp)> addsChunks);

} // namespace meshwork::schedule
