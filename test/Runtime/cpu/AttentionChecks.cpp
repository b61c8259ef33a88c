// Tolerance, f32: inputs lie in [-1, 1] and rows of probabilities sum to one,
// so an output is off by the error of its probabilities. It is that of a score
// (d products, d * 2^-24) plus that of exp, times two for the quotient, plus
// the sum over keys. The bound 64 * d * 2^-24 holds all. Gradients sum s such
// terms, in groups of heads, and are in proportion to the scale. In bf16
// probabilities, score gradients and results are rounded to 2^-9 relative. Sums
// of values of at most one are off by a few of these.
#include "test/Runtime/cpu/AttentionChecks.h"

#include <cmath>

#include <gtest/gtest.h>

namespace meshwork::runtime::test {

Tolerance toleranceOf(const AttentionCase &c) {
  double terms = static_cast<double>(c.d);
  double keep = c.rate > 0 ? 1 / (1 - c.rate) : 1;
  double group = static_cast<double>(c.heads / c.kvHeads);
  double scale = std::max(1.0, std::fabs(static_cast<double>(c.scale)));
  if (c.dtype == DType::f32)
    return {64 * terms * 0x1p-24 * keep,
            256 * terms * 0x1p-24 * keep * keep * group * scale};
  return {4 * 0x1p-9 * keep,
          16 * 0x1p-9 * keep * keep * std::sqrt(terms) * group};
}

/// Minus infinity, which rows have that see no key, as a number to compare.
static Values finite(Values lse) {
  for (double &value : lse)
    value = value == -INFINITY ? -1e9 : value;
  return lse;
}

void expectAttention(const AttentionCase &c) {
  AttentionProblem problem(c);
  AttentionReference expected = problem.reference();
  absl::Status status = problem.program.run(problem.forward);
  ASSERT_TRUE(status.ok()) << status;
  Tolerance tolerance = toleranceOf(c);
  EXPECT_LE(
      maxDifference(problem.program.read(problem.forward.out), expected.out),
      tolerance.forward);
  EXPECT_LE(maxDifference(finite(problem.program.read(problem.forward.lse)),
                          finite(expected.lse)),
            tolerance.forward);
  problem.writeWhole(expected);
  status = problem.program.run(problem.backward);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_LE(
      maxDifference(problem.program.read(problem.backward.dq), expected.dq),
      tolerance.gradient);
  EXPECT_LE(
      maxDifference(problem.program.read(problem.backward.dk), expected.dk),
      tolerance.gradient);
  EXPECT_LE(
      maxDifference(problem.program.read(problem.backward.dv), expected.dv),
      tolerance.gradient);
}

std::vector<Values> resultsOf(AttentionProblem &problem) {
  EXPECT_TRUE(problem.program.run(problem.forward).ok());
  EXPECT_TRUE(problem.program.run(problem.backward).ok());
  std::vector<Values> results;
  for (uint32_t view : {problem.forward.out, problem.backward.dq,
                        problem.backward.dk, problem.backward.dv})
    results.push_back(problem.program.read(view));
  return results;
}

std::vector<int64_t> rowsOf(std::vector<std::pair<int64_t, int64_t>> parts,
                            int64_t padding) {
  std::vector<int64_t> rows;
  for (auto [begin, end] : parts)
    for (int64_t i = begin; i < end; ++i)
      rows.push_back(i);
  rows.insert(rows.end(), padding, -1);
  return rows;
}

} // namespace meshwork::runtime::test
