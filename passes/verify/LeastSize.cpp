#include "passes/verify/LeastSize.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <climits>
#include <numeric>

namespace meshwork::verify {

/// How `size` elements lie on `parts` ranks, as far as it matters to a pass: a
/// bit for each question.
static uint32_t mannerOf(int64_t size, int64_t parts, int64_t unit) {
  int64_t block = llvm::divideCeilSigned(size, parts);
  bool divides = size % parts == 0,
       hasEmpty = llvm::divideCeilSigned(size, block) < parts,
       isEnough = size >= parts, isMore = size >= 2 * parts;
  auto common = static_cast<uint32_t>(std::gcd(block, unit));
  return divides + 2u * hasEmpty + 4u * isEnough + 8u * isMore + 16u * common;
}

int64_t leastSize(int64_t size, llvm::ArrayRef<Split> splits, int64_t least) {
  constexpr int64_t most = 4096; // a larger one would take too long to run
  int64_t best = size;
  int fewest = INT_MAX;
  for (int64_t small = least; small <= std::min(size, most); ++small) {
    int wrong = 0;
    for (const Split &split : splits)
      wrong += llvm::popcount(mannerOf(small, split.after, split.unit) ^
                              mannerOf(size, split.before, split.unit));
    if (wrong < fewest) {
      best = small;
      fewest = wrong;
    }
    if (wrong == 0)
      break;
  }
  return best;
}

} // namespace meshwork::verify
