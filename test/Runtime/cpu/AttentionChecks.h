// What tests of attention have in common.
#pragma once

#include <utility>
#include <vector>

#include "test/Runtime/cpu/AttentionReference.h"

namespace meshwork::runtime::test {

struct Tolerance {
  double forward, gradient;
};
Tolerance toleranceOf(const AttentionCase &c);

/// Runs forward and backward and compares them with the reference.
void expectAttention(const AttentionCase &c);

/// All that a case computes: out, dq, dk, dv.
std::vector<Values> resultsOf(AttentionProblem &problem);

/// [begin, end) of each pair, then rows of padding.
std::vector<int64_t> rowsOf(std::vector<std::pair<int64_t, int64_t>> parts,
                            int64_t padding = 0);

} // namespace meshwork::runtime::test
