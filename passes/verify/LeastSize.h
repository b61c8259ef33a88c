// The least size of a dim that is split in the same manner as a large one.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace meshwork::verify {

/// Into how many parts a dim is split, and into how many in the small step.
struct Split {
  int64_t before = 1, after = 1;
};

/// The least size from `least` to `size` that lies in `after` parts as `size`
/// does in `before`, for each split: divides or not; is enough for all parts,
/// for two elements each, or not; leaves parts empty or not. Where no size does
/// all of it, the first that does most.
int64_t leastSize(int64_t size, llvm::ArrayRef<Split> splits,
                  int64_t least = 1);

} // namespace meshwork::verify
