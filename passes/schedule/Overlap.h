// How overlap is decided and written.
#pragma once

#include "passes/schedule/Order.h"

namespace meshwork::schedule {

/// Waits for the collectives among `instructions`, those of `block` in order,
/// that have a channel.
void insertWaits(::mlir::Block &block,
                 ::llvm::ArrayRef<::mlir::Operation *> instructions);

} // namespace meshwork::schedule
