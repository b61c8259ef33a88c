// Products whose sizes are known only when they run: an expert's rows. On the
// calling thread; nothing is generated before.
//
//   uint64_t bytes = freeGemmScratch(largest);
//   runFreeGemm(spec, lhs, rhs, dst, scratch);
//
// An element's sum over k is the same in whatever block of rows it is computed,
// and of columns that begin at a multiple of freeGemmColumns: a caller may cut
// there as it likes.
#pragma once

#include "runtime/device/cpu/Gemm.h"

namespace meshwork::runtime::cpu {

/// Columns of a product that are worth a call, and the most that it packs once.
int64_t freeGemmColumns(plan::DType type);

/// Of products with the layout and types of `largest`, and no larger sizes.
/// There is no bias, and operands are f32 or bf16.
uint64_t freeGemmScratch(const GemmSpec &largest);
/// k may be 0: the sum is then 0.
void runFreeGemm(const GemmSpec &spec, const std::byte *lhs,
                 const std::byte *rhs, std::byte *dst, std::byte *scratch);

} // namespace meshwork::runtime::cpu
