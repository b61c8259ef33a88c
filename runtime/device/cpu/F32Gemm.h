// Products of small f32 blocks by tiles of our own. A call costs nothing
// beside its products, and operands need no packing (README.md, Measured).
#pragma once

#include "runtime/device/cpu/Gemm.h"

namespace meshwork::runtime::cpu {

/// For operands that stay in the caches, as spec.inCache says. Takes any lhs.
/// An element's sum over k is the same whatever block it is computed in.
std::unique_ptr<Gemm> createF32Gemm(const GemmSpec &spec);

} // namespace meshwork::runtime::cpu
