// Products of types that the machine does not multiply: bf16 where it has no
// bf16 instructions, and 8 bits.
#pragma once

#include "runtime/device/cpu/Gemm.h"

namespace meshwork::runtime::cpu {

/// `spec.type` is bf16, or of 8 bits. Operands are widened to f32 a slice of k
/// at a time, in order of k, and the sum is rounded once at the end. Never
/// packs.
absl::StatusOr<std::unique_ptr<Gemm>>
createConvertingGemm(const GemmSpec &spec);

} // namespace meshwork::runtime::cpu
