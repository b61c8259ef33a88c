// Attention and its gradient against loops in double precision.
#include <cmath>

#include <gtest/gtest.h>

#include "meshwork/Plan/Frame.h"
#include "runtime/device/cpu/AttentionKernels.h"
#include "test/Runtime/cpu/AttentionChecks.h"

namespace meshwork::runtime::test {
namespace {

TEST(Attention, LengthsAroundBlocks) {
  for (int64_t s : {1, 2, 15, 64, 127, 128, 129, 300})
    for (bool causal : {false, true})
      for (DType dtype : {DType::f32, DType::bf16}) {
        SCOPED_TRACE(testing::Message() << "s " << s << " causal " << causal);
        expectAttention({.s = s, .causal = causal, .dtype = dtype});
      }
}

TEST(Attention, HeadSizes) {
  for (int64_t d : {1, 5, 16, 80, 128, 200})
    for (DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(testing::Message() << "d " << d);
      expectAttention({.s = 140, .d = d, .causal = true, .dtype = dtype});
    }
}

TEST(Attention, GroupedQueries) {
  for (int64_t kvHeads : {1, 2, 6})
    for (DType dtype : {DType::f32, DType::bf16})
      expectAttention({.b = 2,
                       .s = 150,
                       .heads = 6,
                       .kvHeads = kvHeads,
                       .causal = true,
                       .dtype = dtype});
}

TEST(Attention, Windows) {
  for (int64_t window : {1, 3, 64, 128, 129, 200, 1000})
    for (bool causal : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << "window " << window << " causal " << causal);
      expectAttention({.s = 390, .causal = causal, .window = window});
    }
}

// Some scores are far within the cap, others beyond it.
TEST(Attention, CapsOfScores) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (float scale : {0.125f, -1.5f})
      for (double rate : {0.0, 0.25})
        expectAttention({.s = 190,
                         .kvHeads = 1,
                         .d = 20,
                         .causal = true,
                         .window = 140,
                         .scale = scale,
                         .cap = 2,
                         .dtype = dtype,
                         .rate = rate});
}

TEST(Attention, SlicesOfOneBuffer) {
  for (DType dtype : {DType::f32, DType::bf16})
    expectAttention({.b = 2,
                     .s = 200,
                     .heads = 3,
                     .kvHeads = 3,
                     .d = 32,
                     .causal = true,
                     .dtype = dtype,
                     .fused = true});
}

TEST(Attention, Dropout) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (int64_t kvHeads : {2, 4})
      expectAttention({.b = 2,
                       .s = 190,
                       .heads = 4,
                       .kvHeads = kvHeads,
                       .causal = true,
                       .dtype = dtype,
                       .rate = 0.25});
}

TEST(Attention, Documents) {
  std::vector<int64_t> cases[] = {{1}, {127, 128, 129}, {5, 6, 200, 256, 257}};
  for (const std::vector<int64_t> &documents : cases)
    for (DType dtype : {DType::f32, DType::bf16})
      for (int64_t window : {0, 40, 140}) {
        SCOPED_TRACE(testing::Message()
                     << "first " << documents[0] << " window " << window);
        expectAttention({.b = 2,
                         .s = 300,
                         .heads = 4,
                         .kvHeads = 2,
                         .d = 32,
                         .causal = true,
                         .window = window,
                         .dtype = dtype,
                         .rate = window ? 0.1 : 0.0,
                         .documents = documents});
      }
}

// Two documents that fill a sequence are what two sequences would be, to the
// bit when blocks begin with them: no block of another document is computed.
TEST(Attention, DocumentsAreLikeSequencesOfTheirOwn) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    AttentionProblem joined(
        {.s = 256, .causal = true, .dtype = dtype, .documents = {128}});
    AttentionProblem apart({.b = 2, .s = 128, .causal = true, .dtype = dtype});
    EXPECT_EQ(resultsOf(joined), resultsOf(apart));
    AttentionProblem open({.s = 256, .causal = true, .dtype = dtype});
    EXPECT_NE(resultsOf(joined), resultsOf(open));
  }
}

// What a first document holds does not matter to the second.
TEST(Attention, HiddenBlocksAreNotRead) {
  AttentionProblem problem({.s = 256, .causal = true, .documents = {128}});
  int64_t width = problem.shape.heads * problem.shape.d;
  for (uint32_t view : {problem.forward.k, problem.forward.v}) {
    Values values = problem.program.read(view);
    std::fill_n(values.begin(), 128 * width, NAN);
    problem.program.write(view, values);
  }
  for (const Values &result : resultsOf(problem))
    for (int64_t i = 128 * width; i < 256 * width; ++i)
      ASSERT_FALSE(std::isnan(result[i])) << i;
}

// No plan can make attention read outside of its operands.
TEST(Attention, DocumentsOutsideOfTheSequenceAreHarmless) {
  for (double begin : {-5.0, 100000.0}) {
    AttentionProblem problem({.s = 200, .causal = true, .documents = {1}});
    problem.program.write(problem.forward.part->documents, Values(200, begin));
    EXPECT_TRUE(problem.program.run(problem.forward).ok());
    EXPECT_TRUE(problem.program.run(problem.backward).ok());
  }
}

// What a rank has of a sequence of 600: blocks, chunks from both ends, next to
// nothing.
TEST(Attention, SomeRowsOfASequence) {
  for (const std::vector<int64_t> &rows :
       {rowsOf({{300, 600}}), rowsOf({{0, 75}, {525, 600}}),
        rowsOf({{0, 128}, {472, 600}}), rowsOf({{550, 600}}, 150),
        rowsOf({{599, 600}}), rowsOf({}, 3)})
    for (DType dtype : {DType::f32, DType::bf16})
      for (int64_t window : {0, 40, 140})
        for (bool documents : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << rows.size() << " rows from " << rows[0] << " window "
                       << window << " documents " << documents);
          AttentionCase c{.b = 2,
                          .s = 600,
                          .heads = 2,
                          .kvHeads = 1,
                          .d = 16,
                          .causal = true,
                          .window = window,
                          .dtype = dtype,
                          .rate = window == 40 ? 0.1 : 0.0,
                          .rows = rows};
          if (documents)
            c.documents = {5, 128, 400, 530};
          expectAttention(c);
        }
  expectAttention({.s = 200, .d = 16, .rows = rowsOf({{7, 170}}, 9)});
}

// Rows do not look at each other: a rank's have the bits that one rank has.
TEST(Attention, RowsAreThoseOfTheWhole) {
  AttentionCase c{.s = 600, .d = 16, .causal = true, .rate = 0.1};
  AttentionProblem whole(c);
  c.rows = rowsOf({{130, 280}, {320, 470}});
  AttentionProblem some(c);
  auto part = [&](uint32_t view) {
    Values all = whole.program.read(view), rows;
    int64_t width = c.heads * c.d;
    for (int64_t row : c.rows)
      rows.insert(rows.end(), all.begin() + row * width,
                  all.begin() + (row + 1) * width);
    return rows;
  };
  some.program.write(some.forward.q, part(whole.forward.q));
  some.program.write(some.backward.dout, part(whole.backward.dout));
  for (AttentionProblem *problem : {&whole, &some}) {
    ASSERT_TRUE(problem->program.run(problem->forward).ok());
    ASSERT_TRUE(problem->program.run(problem->backward).ok());
  }
  EXPECT_EQ(some.program.read(some.forward.out), part(whole.forward.out));
  EXPECT_EQ(some.program.read(some.backward.dq), part(whole.backward.dq));
}

TEST(Attention, PositionsOutsideOfTheSequenceAreHarmless) {
  for (double position : {-7.0, 2147483647.0}) {
    AttentionProblem problem({.s = 200,
                              .causal = true,
                              .window = 30,
                              .rate = 0.1,
                              .rows = rowsOf({{0, 150}})});
    problem.program.write(problem.forward.part->positions,
                          Values(150, position));
    EXPECT_TRUE(problem.program.run(problem.forward).ok());
    EXPECT_TRUE(problem.program.run(problem.backward).ok());
  }
}

TEST(Attention, NegativeScale) {
  expectAttention({.s = 150, .causal = true, .scale = -0.3f});
}

TEST(Attention, LargeScoresDoNotOverflow) {
  expectAttention(
      {.s = 200, .d = 16, .causal = true, .scale = 60.0f, .dtype = DType::f32});
}

/// After forward and backward.
std::vector<std::byte> bytesWith(int threads, const AttentionCase &c) {
  AttentionProblem problem(c);
  EXPECT_TRUE(problem.program.run(problem.forward, {.threads = threads}).ok());
  EXPECT_TRUE(problem.program.run(problem.backward, {.threads = threads}).ok());
  return problem.program.bytes();
}

// Backward has a task for each sample and key head: as many as threads, fewer,
// which threads share, and some left over. 17 blocks of keys are more than its
// parts of a sum.
TEST(Attention, BitsDoNotDependOnThreads) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (auto [b, kvHeads, s] :
         {std::tuple{2, 2, 300}, {1, 1, 2100}, {3, 1, 300}}) {
      AttentionCase c{.b = b,
                      .s = s,
                      .heads = kvHeads * 2,
                      .kvHeads = kvHeads,
                      .d = 16,
                      .causal = true,
                      .dtype = dtype,
                      .rate = 0.1};
      std::vector<std::byte> one = bytesWith(1, c);
      for (int threads : {2, 3})
        EXPECT_TRUE(one == bytesWith(threads, c)) << threads << " threads";
    }
}

// One sample and key head, which threads share, is right too.
TEST(Attention, ThreadsShareAKeyHead) {
  for (DType dtype : {DType::f32, DType::bf16})
    expectAttention({.s = 700,
                     .heads = 2,
                     .kvHeads = 1,
                     .d = 16,
                     .causal = true,
                     .window = 600,
                     .dtype = dtype});
}

// The mask is a function of the global sample: a shard that starts at sample 1
// drops what the whole batch drops there.
TEST(Attention, DropoutFollowsTheGlobalSample) {
  AttentionCase c{.b = 2, .s = 70, .causal = true, .rate = 0.5};
  AttentionProblem whole(c);
  ASSERT_TRUE(whole.program.run(whole.forward).ok());
  c.b = 1;
  c.firstSample += 1;
  AttentionProblem shard(c);
  for (auto [to, from] : {std::pair{shard.forward.q, whole.forward.q},
                          std::pair{shard.forward.k, whole.forward.k},
                          std::pair{shard.forward.v, whole.forward.v}}) {
    Values all = whole.program.read(from);
    shard.program.write(to, Values(all.begin() + all.size() / 2, all.end()));
  }
  ASSERT_TRUE(shard.program.run(shard.forward).ok());
  Values all = whole.program.read(whole.forward.out);
  EXPECT_EQ(Values(all.begin() + all.size() / 2, all.end()),
            shard.program.read(shard.forward.out));
}

/// Heads [first, first + count) of a [b, s, heads, d] tensor.
Values headsOf(const Values &all, int64_t heads, int64_t d, int64_t first,
               int64_t count) {
  Values part;
  for (size_t row = 0; row < all.size() / (heads * d); ++row)
    part.insert(part.end(), all.begin() + (row * heads + first) * d,
                all.begin() + (row * heads + first + count) * d);
  return part;
}

// A rank that has heads 2 and 3 of 4 drops what the whole drops there.
TEST(Attention, DropoutFollowsTheGlobalHead) {
  AttentionCase c{
      .b = 2, .s = 70, .heads = 4, .kvHeads = 4, .causal = true, .rate = 0.5};
  AttentionProblem whole(c);
  c.heads = c.kvHeads = 2;
  AttentionProblem shard(c);
  for (auto *part : {&shard.forward.part, &shard.backward.part}) {
    (*part)->dropout->heads = 4;
    (*part)->dropout->first_head = shard.program.add(DType::i32, {1}, {2});
  }
  auto part = [&](uint32_t view) {
    return headsOf(whole.program.read(view), 4, whole.shape.d, 2, 2);
  };
  for (auto [to, from] : {std::pair{shard.forward.q, whole.forward.q},
                          std::pair{shard.forward.k, whole.forward.k},
                          std::pair{shard.forward.v, whole.forward.v},
                          std::pair{shard.backward.dout, whole.backward.dout}})
    shard.program.write(to, part(from));
  for (AttentionProblem *problem : {&whole, &shard}) {
    ASSERT_TRUE(problem->program.run(problem->forward).ok());
    ASSERT_TRUE(problem->program.run(problem->backward).ok());
  }
  for (auto [of, like] : {std::pair{shard.forward.out, whole.forward.out},
                          std::pair{shard.backward.dq, whole.backward.dq},
                          std::pair{shard.backward.dk, whole.backward.dk},
                          std::pair{shard.backward.dv, whole.backward.dv}})
    EXPECT_EQ(shard.program.read(of), part(like));
  // Counted from its own first head it would drop something else.
  shard.forward.part->dropout->first_head = plan::noView;
  ASSERT_TRUE(shard.program.run(shard.forward).ok());
  EXPECT_NE(shard.program.read(shard.forward.out), part(whole.forward.out));
}

TEST(Attention, NotANumberReachesTheResult) {
  AttentionProblem problem({.s = 140, .causal = true});
  Values k = problem.program.read(problem.forward.k);
  k[130 * problem.shape.kvHeads * problem.shape.d] = NAN;
  problem.program.write(problem.forward.k, k);
  ASSERT_TRUE(problem.program.run(problem.forward).ok());
  Values out = problem.program.read(problem.forward.out);
  int64_t width = problem.shape.heads * problem.shape.d;
  EXPECT_FALSE(std::isnan(out[129 * width]));
  EXPECT_TRUE(std::isnan(out[130 * width]));
}

TEST(Attention, WorkspaceDoesNotGrowWithTheSequence) {
  uint64_t bytes[2];
  for (int i : {0, 1}) {
    AttentionProblem problem({.s = i ? 8192 : 512,
                              .heads = 1,
                              .kvHeads = 1,
                              .causal = true,
                              .empty = true});
    absl::StatusOr<uint64_t> size =
        problem.program.workspaceOf(problem.forward);
    ASSERT_TRUE(size.ok()) << size.status();
    bytes[i] = *size;
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_LT(bytes[1], uint64_t{1} << 20);
}

// Sums of dk and dv of one key head are f32, of one head in f32 in place. The
// sums of parts of dq grow up to 16 blocks of keys, and nothing else.
TEST(Attention, BackwardWorkspaceIsAtMostLinear) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    uint64_t bytes[2];
    for (int i : {0, 1}) {
      AttentionProblem problem({.s = i ? 8192 : 2048,
                                .heads = 4,
                                .kvHeads = 1,
                                .causal = true,
                                .dtype = dtype,
                                .empty = true});
      absl::StatusOr<uint64_t> size =
          problem.program.workspaceOf(problem.backward);
      ASSERT_TRUE(size.ok()) << size.status();
      bytes[i] = *size;
    }
    uint64_t sums = dtype == DType::bf16 ? 8 * 64 * (8192 - 2048) : 0;
    EXPECT_EQ(bytes[1] - bytes[0], sums);
  }
}

TEST(Attention, LongSequence) {
  AttentionCase c{.s = 8192, .heads = 1, .kvHeads = 1, .d = 16, .causal = true};
  AttentionProblem problem(c);
  ASSERT_TRUE(problem.program.run(problem.forward).ok());
  Values q = problem.program.read(problem.forward.q);
  Values k = problem.program.read(problem.forward.k);
  Values v = problem.program.read(problem.forward.v);
  Values out = problem.program.read(problem.forward.out);
  for (int64_t i : {0, 1, 4095, 4096, 8191}) {
    double sum = 0, first = 0; // of the row's first element
    for (int64_t j = 0; j <= i; ++j) {
      double score = 0;
      for (int64_t e = 0; e < c.d; ++e)
        score += q[i * c.d + e] * k[j * c.d + e];
      double weight = std::exp(score * c.scale);
      sum += weight;
      first += weight * v[j * c.d];
    }
    EXPECT_NEAR(out[i * c.d], first / sum, toleranceOf(c).forward) << i;
  }
  ASSERT_TRUE(problem.program.run(problem.backward).ok());
  // Rows of probabilities sum to one, so dv's sum over keys is dout's.
  Values dv = problem.program.read(problem.backward.dv);
  Values dout = problem.program.read(problem.backward.dout);
  double dvSum = 0, doutSum = 0;
  for (int64_t j = 0; j < c.s; ++j) {
    dvSum += dv[j * c.d];
    doutSum += dout[j * c.d];
  }
  EXPECT_NEAR(dvSum, doutSum, 8192 * 0x1p-20);
}

TEST(Attention, RefusesBadShapes) {
  AttentionProblem problem({.s = 8, .heads = 4, .kvHeads = 4});
  plan::AttentionT op = problem.forward;
  op.k = problem.program.add(DType::f32, {1, 8, 3, 64});
  EXPECT_EQ(problem.program.run(op).message(),
            "instruction \"under.test\" (Attention): q has 4 heads and k 3, "
            "expected a multiple");
  op = problem.forward;
  op.part->scale = 0;
  EXPECT_EQ(problem.program.run(op).message(),
            "instruction \"under.test\" (Attention): scale is 0, expected a "
            "finite number but zero");
  op = problem.forward;
  op.part->window = -1;
  EXPECT_EQ(problem.program.run(op).message(),
            "instruction \"under.test\" (Attention): window is -1, expected 0 "
            "(unlimited) or more");
  op = problem.forward;
  op.part->documents = problem.program.add(DType::i32, {1, 7});
  EXPECT_NE(problem.program.run(op).message().find("documents"),
            std::string::npos);
  op = problem.forward;
  op.k = op.v = problem.program.add(DType::f32, {1, 16, 4, 64});
  EXPECT_NE(problem.program.run(op).message().find(
                "q has 8 rows and k 16, expected positions, or as many"),
            std::string::npos);
  op.part->positions = problem.program.add(DType::i32, {7});
  EXPECT_NE(problem.program.run(op).message().find("positions"),
            std::string::npos);
  op = problem.forward;
  op.part->key_positions = problem.program.add(DType::i32, {8});
  EXPECT_NE(problem.program.run(op).message().find(
                "total_keys is 0, expected 1 to 2^31"),
            std::string::npos);
  op.part->total_keys = 8;
  op.part->key_positions = problem.program.add(DType::i32, {7});
  EXPECT_NE(problem.program.run(op).message().find("key_positions"),
            std::string::npos);
}

TEST(Attention, ExponentialIsWithinTwoUlp) {
  std::vector<float> x, y;
  for (double value = -88; value <= 88; value += 1.0 / 4096)
    x.push_back(static_cast<float>(value));
  x.insert(x.end(), {-INFINITY, -1000.0f, NAN});
  y.resize(x.size());
  cpu::attentionKernels().exponential(x.data(), x.size(), y.data());
  double worst = 0;
  for (size_t i = 0; i + 3 < x.size(); ++i) {
    double exact = std::exp(static_cast<double>(x[i]));
    if (exact < 0x1p-126) {
      EXPECT_EQ(y[i], 0) << x[i];
      continue;
    }
    double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
    worst = std::max(worst, std::fabs(y[i] - exact) / ulp);
  }
  EXPECT_LE(worst, 1.5);
  EXPECT_EQ(y[y.size() - 3], 0);
  EXPECT_EQ(y[y.size() - 2], 0);
  EXPECT_TRUE(std::isnan(y.back()));
}

} // namespace
} // namespace meshwork::runtime::test
