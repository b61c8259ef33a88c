// Attention where k and v have a part of the sequence's keys.
#include <cmath>

#include <gtest/gtest.h>

#include "test/Runtime/cpu/AttentionChecks.h"

namespace meshwork::runtime::test {
namespace {

/// Keys that a rank meets of a sequence of 600: none, a block, chunks from both
/// ends, ends of blocks, padding behind them.
std::vector<std::vector<int64_t>> someKeys() {
  return {rowsOf({{0, 150}}), rowsOf({{75, 150}, {450, 525}}, 21),
          rowsOf({{128, 256}, {472, 600}}, 128), rowsOf({{599, 600}}, 150),
          rowsOf({}, 130)};
}

TEST(AttentionKeys, SomeKeysOfASequence) {
  int turn = 0;
  for (const std::vector<int64_t> &keys : someKeys())
    for (const std::vector<int64_t> &rows :
         {rowsOf({{300, 600}}), rowsOf({{0, 75}, {525, 600}}, 9)})
      for (int64_t window : {0, 40, 300}) {
        SCOPED_TRACE(testing::Message()
                     << keys.size() << " keys from " << keys[0]
                     << ", rows from " << rows[0] << " window " << window);
        AttentionCase c{.b = 2,
                        .s = 600,
                        .heads = 2,
                        .kvHeads = ++turn % 2 ? 1 : 2,
                        .d = 16,
                        .causal = true,
                        .window = window,
                        .dtype = turn % 4 < 2 ? DType::f32 : DType::bf16,
                        .rate = window == 300 ? 0.1 : 0.0,
                        .rows = rows,
                        .keys = keys,
                        .f32Results = turn % 3 != 0};
        if (turn % 5 < 2)
          c.documents = {5, 128, 400, 530};
        expectAttention(c);
      }
}

/// The case's forward and backward; backward's rows are the reference's.
std::vector<Values> resultsOfKeys(AttentionProblem &problem) {
  problem.writeWhole(problem.reference());
  return resultsOf(problem);
}

// Rows of -1 behind all keys change no bit, though they hold NaN.
TEST(AttentionKeys, PaddingOfKeysAddsNothing) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    AttentionCase c{.s = 256,
                    .d = 16,
                    .causal = true,
                    .dtype = dtype,
                    .rate = 0.1,
                    .rows = rowsOf({{0, 256}}),
                    .keys = rowsOf({{0, 256}})};
    AttentionProblem without(c);
    c.keys = rowsOf({{0, 256}}, 40);
    AttentionProblem with(c);
    std::vector<Values> expected = resultsOfKeys(without);
    std::vector<Values> actual = resultsOfKeys(with);
    for (int i : {2, 3}) { // dk and dv
      for (size_t at = expected[i].size(); at < actual[i].size(); ++at)
        ASSERT_EQ(actual[i][at], 0);
      actual[i].resize(expected[i].size());
    }
    EXPECT_EQ(actual, expected);
  }
}

// A call with keys computes what the call without them does.
TEST(AttentionKeys, AllKeysAreTheWholeCall) {
  AttentionCase c{.s = 300, .d = 16, .causal = true, .rate = 0.1};
  c.rows = rowsOf({{0, 300}});
  AttentionProblem whole(c);
  c.keys = c.rows;
  AttentionProblem listed(c);
  EXPECT_EQ(resultsOf(whole)[0], resultsOf(listed)[0]);
  for (uint32_t plan::AttentionGradT::*view :
       {&plan::AttentionGradT::out, &plan::AttentionGradT::lse})
    listed.program.write(listed.backward.*view,
                         whole.program.read(whole.backward.*view));
  EXPECT_EQ(resultsOf(whole), resultsOf(listed));
}

// Results in f32 are those that bf16 rounds.
TEST(AttentionKeys, ResultsInF32AreNotRounded) {
  AttentionCase c{.s = 300,
                  .d = 16,
                  .causal = true,
                  .dtype = DType::bf16,
                  .rows = rowsOf({{100, 300}}),
                  .keys = rowsOf({{0, 200}}, 5)};
  AttentionProblem rounded(c);
  c.f32Results = true;
  AttentionProblem exact(c);
  std::vector<Values> expected = resultsOfKeys(rounded);
  std::vector<Values> actual = resultsOfKeys(exact);
  EXPECT_NE(actual, expected);
  for (Values &values : actual)
    for (double &value : values)
      value = roundTo(DType::bf16, value);
  EXPECT_EQ(actual, expected);
}

// No table of a plan can make attention read outside of its operands.
TEST(AttentionKeys, KeyPositionsOutsideOfTheSequenceAreHarmless) {
  for (double position : {-7.0, 2147483647.0}) {
    AttentionProblem problem({.s = 200,
                              .causal = true,
                              .window = 30,
                              .rate = 0.1,
                              .rows = rowsOf({{0, 150}}),
                              .keys = rowsOf({{20, 170}})});
    problem.program.write(problem.forward.part->key_positions,
                          Values(150, position));
    EXPECT_TRUE(problem.program.run(problem.forward).ok());
    EXPECT_TRUE(problem.program.run(problem.backward).ok());
  }
}

} // namespace
} // namespace meshwork::runtime::test
