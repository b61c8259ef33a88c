// Attention by wgmma, on a real GPU of compute capability 9.0 or on the
// emulated one.
#include "test/Runtime/cuda/WgmmaCase.h"
#include <climits>

namespace meshwork::runtime::cuda::test {
namespace {

// Lengths end within, at and after blocks of 64 and 128; windows begin within
// blocks. The emulated GPU has few multiprocessors, so blocks take several
// items.
TEST_F(Wgmma, OneTile) {
  expectCase({.sequence = 64, .heads = 1, .kvHeads = 1});
}
TEST_F(Wgmma, SeveralTiles) { expectCase({.sequence = 400, .batch = 2}); }
TEST_F(Wgmma, WholeTiles) {
  expectCase({.sequence = 512, .heads = 1, .kvHeads = 1});
}
TEST_F(Wgmma, AllKeys) { expectCase({.sequence = 300, .causal = false}); }
TEST_F(Wgmma, Window) { expectCase({.sequence = 450, .window = 90}); }
TEST_F(Wgmma, WindowOfAllKeys) {
  expectCase({.sequence = 300, .causal = false, .window = 130});
}
TEST_F(Wgmma, GroupsOfHeads) {
  expectCase({.sequence = 200, .heads = 6, .kvHeads = 2, .batch = 2});
}
TEST_F(Wgmma, OneHeadOfKeysWithGaps) {
  expectCase({.sequence = 161, .heads = 3, .kvHeads = 1, .gap = 8});
}
TEST_F(Wgmma, OneQuery) { expectCase({.sequence = 1}); }
TEST_F(Wgmma, NarrowHeads) { expectCase({.sequence = 150, .d = 16}); }
TEST_F(Wgmma, WideHeads) {
  expectCase({.sequence = 400, .heads = 2, .kvHeads = 1, .d = 128});
}
TEST_F(Wgmma, WideHeadsOfAllKeys) {
  expectCase({.sequence = 190, .d = 128, .causal = false});
}
TEST_F(Wgmma, HeadsOfOddWidth) {
  expectCase({.sequence = 170, .d = 80, .window = 70, .gap = 8});
}

// Documents that begin at the edges of tiles and within them.
TEST_F(Wgmma, Documents) {
  expectCase({.sequence = 450,
              .batch = 2,
              .documents = true,
              .begins = {10, 64, 130, 140, 256, 449}});
}
TEST_F(Wgmma, DocumentsInAWindow) {
  expectCase({.sequence = 300,
              .heads = 4,
              .kvHeads = 2,
              .d = 128,
              .window = 80,
              .documents = true,
              .begins = {128, 200}});
}
TEST_F(Wgmma, OneDocumentHasTheBitsOfNone) {
  Case c{.sequence = 300, .d = 64}, with = c;
  with.documents = true;
  Outcome none = outcomeOf(c, inputsOf(c)),
          one = outcomeOf(with, inputsOf(with));
  EXPECT_EQ(one.out, none.out);
  EXPECT_EQ(one.dq, none.dq);
  EXPECT_EQ(one.dk, none.dk);
  EXPECT_EQ(one.dv, none.dv);
}

/// Blocks on the other side of where a document begins are not multiplied by
/// zero, they are not read.
TEST_F(Wgmma, HiddenBlocksAreNotRead) {
  Case c{.sequence = 384, .documents = true, .begins = {256}};
  for (bool ofFirst : {true, false}) {
    Inputs in = inputsOf(c);
    auto isPoisoned = [&](size_t at) {
      return (static_cast<long long>(at) / (c.heads * c.d) < 256) == ofFirst;
    };
    for (Values *values : {&in.q, &in.k, &in.v, &in.dout})
      for (size_t at = 0; at < values->size(); ++at)
        if (isPoisoned(at))
          (*values)[at] = NAN;
    Outcome found = outcomeOf(c, in);
    for (const Values *values : {&found.out, &found.dq, &found.dk, &found.dv})
      for (size_t at = 0; at < values->size(); ++at)
        ASSERT_EQ(std::isnan((*values)[at]), isPoisoned(at)) << at;
  }
}

/// No plan's data are such; memory outside is not touched even then, and a
/// query still sees itself.
TEST_F(Wgmma, AnyPositionOfDocumentsIsSafe) {
  constexpr int any[] = {-1, 1 << 30, INT_MIN, 0, 77, INT_MAX, -300, 299};
  Case c{.sequence = 300, .documents = true};
  Inputs in = inputsOf(c);
  for (size_t i = 0; i < in.documents.size(); ++i)
    in.documents[i] = any[i * i % std::size(any)];
  for (int first : any) {
    in.documents[0] = in.documents[128] = first;
    Outcome found = outcomeOf(c, in);
    for (const Values *values :
         {&found.out, &found.lse, &found.dq, &found.dk, &found.dv})
      for (double value : *values)
        ASSERT_TRUE(std::isfinite(value));
  }
}

// One rank's queries, in two runs, of which the lengths that 2 or 3 ranks do
// not divide leave padding: against all keys, and as hops of a ring against
// those of each rank, in f32.
TEST_F(Wgmma, PartOfQueries) {
  expectCase({.sequence = 600, .parts = 2});
  expectCase({.sequence = 597, .window = 90, .parts = 2, .part = 1});
  expectCase({.sequence = 300, .causal = false, .parts = 3, .part = 2});
  expectCase({.sequence = 520,
              .kvHeads = 1,
              .d = 128,
              .batch = 2,
              .documents = true,
              .begins = {10, 128, 300},
              .parts = 2,
              .part = 1});
}
TEST_F(Wgmma, HopsOfARing) {
  for (long long part : {0, 1, 2})
    for (long long keysOf : {0, 1, 2})
      expectCase({.sequence = 590,
                  .kvHeads = 1,
                  .parts = 3,
                  .part = part,
                  .keysOf = keysOf,
                  .wideResults = true});
  expectCase({.sequence = 400,
              .d = 80,
              .window = 70,
              .gap = 8,
              .documents = true,
              .begins = {100, 130, 350},
              .parts = 2,
              .part = 0,
              .keysOf = 1,
              .wideResults = true});
}
/// A rank whose queries see none of another's keys: zero, and no sum.
TEST_F(Wgmma, AHopThatNobodySees) {
  expectCase({.sequence = 2048,
              .heads = 4,
              .d = 16,
              .window = 100,
              .parts = 4,
              .part = 3,
              .keysOf = 0,
              .wideResults = true});
}

TEST_F(Wgmma, SameBitsEachRun) {
  Case c{.sequence = 260, .heads = 4, .kvHeads = 2};
  Inputs in = inputsOf(c);
  Outcome first = outcomeOf(c, in), second = outcomeOf(c, in, /*again=*/true);
  EXPECT_EQ(first.out, second.out);
  EXPECT_EQ(first.dq, second.dq);
  EXPECT_EQ(first.dk, second.dk);
  EXPECT_EQ(first.dv, second.dv);
}

/// A key that is not a number shows in all queries that see it, and in none of
/// the blocks that do not.
TEST_F(Wgmma, NotANumberShows) {
  Case c{.sequence = 300, .heads = 1, .kvHeads = 1};
  for (Values Inputs::*operand : {&Inputs::k, &Inputs::v}) {
    Inputs in = inputsOf(c);
    (in.*operand)[130 * c.d + 3] = NAN;
    Outcome found = outcomeOf(c, in);
    for (long long i = 0; i < c.sequence; ++i) {
      double out = found.out[i * c.d + 3], dq = found.dq[i * c.d + 3];
      if (i >= 130) {
        EXPECT_TRUE(std::isnan(out) && std::isnan(dq)) << i;
      } else if (i < 128) {
        EXPECT_FALSE(std::isnan(out) || std::isnan(dq)) << i;
      }
    }
    EXPECT_TRUE(std::isnan(found.dk[130 * c.d]));
  }
  // Keys that a query does not see keep their dk, in the query's block too.
  Inputs in = inputsOf(c);
  in.dout[130 * c.d + 3] = NAN;
  Outcome found = outcomeOf(c, in);
  for (long long j = 0; j < c.sequence; ++j)
    EXPECT_EQ(std::isnan(found.dk[j * c.d]), j <= 130) << j;
}

TEST_F(Wgmma, AnOldDriverDescribesNoTensors) {
  Driver old = *on.driver;
  old.tensorMapEncodeTiled = nullptr;
  absl::Status status = WgmmaKernels::load(old, on.device).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_NE(status.message().find("expected one of CUDA 12.0 or newer"),
            std::string::npos)
      << status;
}

TEST_F(Wgmma, WhatOthersMustDo) {
  AttentionProblem problem;
  problem.q.dims = problem.k.dims = {1, 2, 100, 64};
  expectOk(WgmmaKernels::check(problem));
  auto expectLeft = [&](AttentionProblem changed, const char *why) {
    absl::Status status = WgmmaKernels::check(changed);
    EXPECT_TRUE(absl::IsUnimplemented(status));
    EXPECT_NE(status.message().find(why), std::string::npos) << status;
  };
  AttentionProblem other = problem;
  other.q.dims[3] = 136;
  expectLeft(other, "heads of 136 elements, expected at most 128");
  other = problem;
  other.queries = {{0, 1, 0}, {2, 1, 1}, {4, 1, 2}};
  expectLeft(other, "a part of a sequence in 3 runs, expected at most 2");
  for (float scale : {0.0f, -1.0f, NAN}) {
    other = problem;
    other.scale = scale;
    expectLeft(other, "expected above zero");
  }
  other = problem;
  other.q.dims[0] = int64_t{1} << 40;
  expectLeft(other, "2^30 blocks of rows or more");
  other = problem;
  other.q.dims[2] = int64_t{1} << 40;
  expectLeft(other, "tokens, expected at most 8388608");
  EXPECT_TRUE(absl::IsUnimplemented(
      kernels->gradient(problem, {}, 0, 2 * 128 * 8 - 1, on.stream).status()));
}

} // namespace
} // namespace meshwork::runtime::cuda::test
