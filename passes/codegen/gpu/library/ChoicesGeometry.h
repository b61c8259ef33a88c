// How choices are cut into parts, for those who launch the blocks too.
#pragma once

namespace meshwork::choiceParts {

/// Of a block, which has them in shared memory at once.
inline constexpr long long choices = 1024, sharedBytes = choices * 4;

/// A thread for each expert, in whole warps; a block has no more.
inline constexpr long long lanes = 32, mostThreads = 1024;
inline constexpr long long threadsFor(long long experts) {
  long long threads = (experts + lanes - 1) / lanes * lanes;
  return threads < mostThreads ? threads : mostThreads;
}

inline constexpr long long countOf(long long all) {
  return (all + choices - 1) / choices;
}

} // namespace meshwork::choiceParts
