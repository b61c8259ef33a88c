// Products of bf16 on AVX-512 by tiles of our own, which run nearer to the
// multipliers' peak than oneDNN's (README.md, Measured).
#pragma once

#include "runtime/device/cpu/Gemm.h"

namespace meshwork::runtime::cpu {

/// Whether Gemm::create answers with a TileGemm for operands of this type: for
/// bf16 where the machine has avx512_bf16, but no matrix registers (AMX), which
/// oneDNN uses. ONEDNN_MAX_CPU_ISA counts.
bool hasTileGemm(plan::DType type);

/// Takes any layout. Needs hasTileGemm(spec.type). An element's sum over k is
/// the same whatever block of the product it is computed in, so a caller may
/// cut the product as it likes.
std::unique_ptr<Gemm> createTileGemm(const GemmSpec &spec);

} // namespace meshwork::runtime::cpu
