// How near a result of one device must be to another's.
#pragma once

#include "absl/types/span.h"
#include "lib/Plan/Views.h"
#include "runtime/base/ThreadTeam.h"
#include <cstddef>

namespace meshwork::runtime {

/// Whether `got` is as near to `expected` as rounding allows, and how near.
/// Returns the largest share of the allowance of any element, above 1 when it
/// is not. Both hold the bytes that the view spans.
///   inexact  some operand of the instruction is bf16 or of 8 bits
///
/// An element may be off by a part of itself and a part of a root mean square:
/// that of its row or, if more, of all. Sums of other elements' size round at
/// their size. Rows differ: of attention's, the first are sums over few keys
/// and larger than the others.
///
///   bf16 results   2^-6 and 0.03 (8 bits, and an intermediate rounded too)
///   f32 from bf16  2^-9 and 0.01 (intermediates that one device keeps in f32)
///   f32            2^-15 and 1e-4 (sums in another order, approximate
///                  functions)
///   8 bits         a place of the last bit and 0.03
///   i32            nothing
double shareOfAllowance(const plan::ViewInfo &view,
                        absl::Span<const std::byte> expected,
                        absl::Span<const std::byte> got, bool inexact,
                        ThreadTeam &team);

/// Sets the parts of maxima, along the view's first dim, to the largest of them
/// (NaN where one is): devices that cut the rows otherwise agree on nothing
/// else.
void joinMaxima(const plan::ViewInfo &view, absl::Span<std::byte> bytes);

} // namespace meshwork::runtime
