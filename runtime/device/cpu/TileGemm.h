// Products of bf16 on AVX-512 by tiles of our own, which run nearer to the
// multipliers' peak than oneDNN's (README.md, Measured).
#pragma once

#include "runtime/device/cpu/Gemm.h"

namespace meshwork::runtime::cpu {

/// Whether Gemm::create answers with a TileGemm for operands of this type: for
/// bf16 where the machine has avx512_bf16, but no matrix registers (AMX), which
/// oneDNN uses. ONEDNN_MAX_CPU_ISA counts.
bool hasTileGemm(plan::DType type);

/// Whether the machine has the instructions, whatever Gemm::create answers.
bool canTileGemm(plan::DType type);

/// Takes any layout. Needs canTileGemm(spec.type). An element's sum over k is
/// the same whatever block of the product it is computed in, so a caller may
/// cut the product as it likes.
std::unique_ptr<Gemm> createTileGemm(const GemmSpec &spec);

/// The same product at once, for sizes that no one knew before. Scratch for the
/// largest sizes, of one type and layout, serves all smaller ones.
uint64_t tileGemmScratch(const GemmSpec &spec);
void runTileGemm(const GemmSpec &spec, const std::byte *lhs,
                 const std::byte *rhs, std::byte *dst, std::byte *scratch);

} // namespace meshwork::runtime::cpu
