// bf16 products on machines without bf16 instructions.
#pragma once

#include "runtime/device/cpu/Gemm.h"

namespace meshwork::runtime::cpu {

/// `spec.type` is bf16. Operands are widened to f32 a slice of k at a time, in
/// order of k, and the sum is rounded once at the end. Never packs.
absl::StatusOr<std::unique_ptr<Gemm>>
createConvertingGemm(const GemmSpec &spec);

} // namespace meshwork::runtime::cpu
