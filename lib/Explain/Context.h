// How ranks with parts of a sequence share attention: which of its blocks each
// computes.
#pragma once

#include "meshwork/Plan/Plan.h"
#include <string>
#include <vector>

namespace meshwork::explain {

/// Of one program whose ranks share the queries of a sequence. A block is
/// `block` queries by as many keys, half of what a rank has of an even
/// sequence.
struct SharedAttention {
  std::string method; // "gathered"
  std::string axes;   // "cp in zigzag"
  uint64_t block = 0;
  /// Blocks with a pair that causality and the window leave, by the ranks'
  /// places along the axes; of the first 64 of these.
  std::vector<uint64_t> blocksOfRank;
  uint64_t ranks = 0;
};

/// Nothing where each rank attends to whole sequences. One for each window.
std::vector<SharedAttention> sharedAttention(const plan::Plan &plan,
                                             const plan::Program &program);

/// As text; empty where there is none.
std::string sharedAttentionText(const plan::Plan &plan,
                                const plan::Program &program);

} // namespace meshwork::explain
