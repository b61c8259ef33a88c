// Initial weights: a function of the seed, the tensor's name and the element's
// index alone. The mesh, the order of tensors, the number of threads and the
// machine do not matter.
//
//   initialize(*parameter, {seed, hashOfName("wte.weight")},
//              absl::MakeSpan(weights));
//
// The tensor is that of the files (lib/Plan/FileForms.h): a parameter that
// files hold in several tensors starts as several parameters of these names
// would. Block b of tensor t is Philox4x32-10. Its key is (seed low, seed
// high), its counter (b low, b high, h low, h high), with h = XXH3-64 of the
// name. The four words of a block give elements 4b .. 4b + 3:
//   normal   mean + deviation * z. Words 0 and 1 give two z by Box and Muller
//            (Ann. Math. Stat. 29 (1958) 610), words 2 and 3 two more:
//            sqrt(-2 ln((w0 + 1) / 2^32)) times cos and sin of 2 pi w1 / 2^32,
//            in f32 without fused multiply-adds; |z| <= 6.66
//   uniform  low + (high - low) * floor(w / 2^8) / 2^24
//   constant the value
#pragma once

#include <cstdint>
#include <string_view>

#include <absl/types/span.h>

#include "meshwork/Plan/Plan.h"

namespace meshwork::runtime {

/// What a tensor's values are drawn by.
struct InitStream {
  uint64_t seed, nameHash;
};
uint64_t hashOfName(std::string_view tensor);

/// Writes elements firstElement .. firstElement + out.size() of the row-major
/// order of a tensor in files, by the parameter's rule. A split at any place
/// gives the same values.
void initialize(const plan::Parameter &parameter, InitStream stream,
                absl::Span<float> out, uint64_t firstElement = 0);

} // namespace meshwork::runtime
