// Products from memory by the f32 tiles of attention: a slice of rhs is packed
// to strips as wide as a tile and meets the rows of lhs. Of f32, and of bf16
// where the machine has no instructions for it.
#pragma once

#include "runtime/device/cpu/Gemm.h"

namespace meshwork::runtime::cpu {

/// Columns whose slice is packed at once.
constexpr int64_t sliceGemmColumns = 256;

/// See FreeGemm.h. Any layout of lhs and rhs.
uint64_t sliceGemmScratch(const GemmSpec &largest);
void runSliceGemm(const GemmSpec &spec, const std::byte *lhs,
                  const std::byte *rhs, std::byte *dst, std::byte *scratch);

} // namespace meshwork::runtime::cpu
