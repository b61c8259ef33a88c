// Parts of emitKernel.
#pragma once

#include "passes/codegen/BodyEmitter.h"

namespace meshwork::codegen {

/// Elements of a vector: a power of two, at least 2 when there are cols.
int64_t chooseWidth(const Walk &walk, const CpuTarget &target);
/// By how much rolls of the walk shift what they read, in all sums that occur;
/// without zero.
llvm::SmallVector<int64_t> rotationsOf(const Walk &walk);

} // namespace meshwork::codegen
