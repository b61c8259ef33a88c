// The least size of a dim that is split in the same manner as a large one.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace meshwork::verify {

/// Into how many parts a dim is split, and into how many in the small step.
struct Split {
  int64_t before = 1, after = 1;
  /// What a part has in common with this number matters, too: their greatest
  /// common divisor.
  int64_t unit = 1;
};

/// The least size from `least` to `size` that lies in each split's `after`
/// parts as `size` lies in its `before` parts. These answers are to be the
/// same: whether the parts divide the size, whether there is an element for
/// each of them, whether there are two, and whether some part is empty. So is
/// what the first part has in common with `unit`. If no size has all of them,
/// the first one with the most.
int64_t leastSize(int64_t size, llvm::ArrayRef<Split> splits,
                  int64_t least = 1);

} // namespace meshwork::verify
