// The most that fits.
#pragma once

#include "tools/meshwork/driver/search/Search.h"

#include <limits>

namespace meshwork::driver {

/// Ways in a row, by number: each needs more memory than the one before, and
/// takes less time.
struct Line {
  /// Tried first, from the most down, until one fits.
  std::vector<int64_t> corners;
  /// One above the corners that does not fit.
  std::optional<Tried<int64_t>> above = std::nullopt;
  /// Of ways between the corners.
  size_t mostTrials = std::numeric_limits<size_t>::max();
};

/// The last of the line that needs at most `limit` bytes; the lowest corner
/// where none does. Between a way that fits and one that does not, the next to
/// be tried is where a straight line meets the limit. A way that is refused
/// counts as too large. Fails by a fault of the compiler.
mlir::FailureOr<Tried<int64_t>>
mostThatFits(const Line &line, uint64_t limit,
             llvm::function_ref<Outcome(int64_t)> compile);

} // namespace meshwork::driver
