// TopK: against a sort, bit for bit, whatever the threads.
#include <gtest/gtest.h>

#include "test/Runtime/cpu/TestProgram.h"
#include "test/Support/TopK.h"

namespace meshwork::runtime::test {
namespace {
using meshwork::test::choicesOf;
using meshwork::test::TopKCase;

std::vector<float> scoresOf(const TopKCase &c) {
  return meshwork::test::tiedScores(c.rows * c.experts,
                                    static_cast<uint32_t>(c.experts + c.k));
}

plan::TopKT opOf(const TopKCase &c) {
  plan::TopKT op;
  op.groups = c.groups;
  op.kept_groups = c.kept;
  op.group_score =
      c.addsTwo ? plan::GroupScore::two_best : plan::GroupScore::maximum;
  return op;
}

/// Rows `gap` elements further apart than they are long. `valid`: of each row.
void check(const TopKCase &c, int threads, int64_t gap, const Values &valid) {
  TestProgram program;
  std::vector<float> scores = scoresOf(c);
  plan::TopKT op = opOf(c);
  int64_t stride = c.experts + gap, out = c.k + gap;
  op.scores = program.addView(program.addBuffer(DType::f32, c.rows * stride),
                              DType::f32, {c.rows, c.experts}, {stride, 1});
  op.choices = program.addView(program.addBuffer(DType::i32, c.rows * out),
                               DType::i32, {c.rows, c.k}, {out, 1});
  program.write(op.scores, Values(scores.begin(), scores.end()));
  if (!valid.empty())
    op.valid = program.add(DType::f32, {c.rows}, valid);
  absl::Status status = program.run(op, {.threads = threads});
  ASSERT_TRUE(status.ok()) << status;
  Values found = program.read(op.choices);
  for (int64_t row = 0; row < c.rows; ++row) {
    auto expected = choicesOf(c, {scores.begin() + row * c.experts,
                                  scores.begin() + (row + 1) * c.experts});
    for (int64_t i = 0; i < c.k; ++i)
      EXPECT_EQ(found[row * c.k + i],
                valid.empty() || valid[row] != 0 ? expected[i] : -1)
          << c.experts << " experts, row " << row << ", choice " << i;
  }
}

TEST(TopK, ChoosesAsASortDoes) {
  for (const TopKCase &c : meshwork::test::topKCases)
    for (int threads : {1, 3}) {
      check(c, threads, 0, {});
      check(c, threads, 5, {});
    }
}

TEST(TopK, PaddingChoosesNothing) {
  for (const TopKCase &c : meshwork::test::topKCases) {
    Values valid(c.rows, 1);
    valid[0] = valid[c.rows - 1] = 0;
    check(c, 2, 0, valid);
  }
}

/// A NaN is larger than an infinity, -0 is 0, and equal ones are taken in
/// order.
TEST(TopK, HasAnOrderForAll) {
  auto choose = [](Values scores, plan::TopKT op, int64_t k) {
    TestProgram program;
    op.scores = program.add(DType::f32, {int64_t(scores.size())}, scores);
    op.choices = program.add(DType::i32, {k});
    EXPECT_TRUE(program.run(op).ok());
    return program.read(op.choices);
  };
  EXPECT_EQ(choose({-0.0, 0.0, INFINITY, NAN, -INFINITY, NAN}, {}, 6),
            (Values{3, 5, 2, 0, 1, 4}));
  // Infinities of both signs add up to a NaN, so their group is the best.
  plan::TopKT two = opOf({1, 4, 1, 2, 1, true});
  EXPECT_EQ(choose({5, 5, INFINITY, -INFINITY}, two, 2), (Values{2, 3}));
  EXPECT_EQ(choose({5, 5, 4, 6}, two, 2), (Values{0, 1})); // a tie of groups
}

TEST(TopK, RefusesOtherTypesAndGroups) {
  auto run = [](DType type, Dims choices, const TopKCase &c) {
    TestProgram program;
    plan::TopKT op = opOf(c);
    op.scores = program.add(type, {2, 8});
    op.choices = program.add(DType::i32, choices);
    return std::string(program.run(op).message());
  };
  std::string at = "instruction \"under.test\" (TopK): ";
  EXPECT_EQ(run(DType::i32, {2, 3}, {}),
            at + "scores is i32[2, 8] with strides [8, 1], expected f32");
  EXPECT_EQ(run(DType::f32, {2, 9}, {}),
            at + "makes 9 choices of 8 experts in 1 of 1 groups");
  EXPECT_EQ(run(DType::f32, {3, 2}, {}),
            at + "makes 2 choices of 8 experts in 1 of 1 groups");
  for (auto [groups, kept] : {std::pair(0, 1), {3, 1}, {4, 0}, {4, 5}, {-4, 1}})
    EXPECT_EQ(run(DType::f32, {2, 1}, {0, 0, 0, groups, kept}),
              at + "makes 1 choices of 8 experts in " + std::to_string(kept) +
                  " of " + std::to_string(groups) + " groups");
}

} // namespace
} // namespace meshwork::runtime::test
