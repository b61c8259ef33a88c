// Attention by wgmma, on a real GPU of compute capability 9.0 or on the
// emulated one.
#include "test/Runtime/cuda/WgmmaCase.h"
#include <climits>
#include <cstdlib>
#include <random>

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

// One rank's queries, in two runs of tokens. Lengths that 2 or 3 ranks do not
// divide leave padding in them. The queries meet all keys, and the keys of each
// rank as hops of a ring, in f32.
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
/// After a tile that it multiplies, one warpgroup passes over more tiles than
/// the ring has slots. A document ends within a block of keys, or the keys end
/// in the first half of a block.
TEST_F(Wgmma, HiddenTilesBehindAVisibleOne) {
  for (int begin : {64, 100})
    expectCase({.sequence = 640,
                .heads = 1,
                .kvHeads = 1,
                .documents = true,
                .begins = {begin}});
  expectCase({.sequence = 559, .heads = 2, .kvHeads = 1, .causal = false});
  expectCase({.sequence = 889,
              .heads = 1,
              .kvHeads = 1,
              .causal = false,
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

/// What people run, at random; a run that fails prints its case.
Case drawCase(std::mt19937 &random) {
  auto from = [&](std::initializer_list<long long> choices) {
    return choices.begin()[random() % choices.size()];
  };
  Case c{.sequence = 1 + static_cast<long long>(random() % 600)};
  c.d = from({64, 64, 64, 16, 80, 128});
  c.kvHeads = from({1, 1, 2});
  c.heads = c.kvHeads * from({1, 2, 3});
  c.batch = from({1, 1, 2});
  c.causal = random() % 4 != 0;
  c.window = from({0, 0, 0, 1 + static_cast<long long>(random() % 300)});
  c.gap = from({0, 0, 8});
  c.parts = from({1, 1, 2, 3});
  c.part = static_cast<long long>(random()) % c.parts;
  if (c.parts > 1 && random() % 2) {
    c.keysOf = static_cast<long long>(random()) % c.parts;
    c.wideResults = true;
  }
  c.documents = random() % 2;
  if (c.documents)
    for (int &begin : c.begins)
      begin = static_cast<int>(random() % c.sequence);
  std::sort(std::begin(c.begins), std::end(c.begins));
  return c;
}
std::ostream &operator<<(std::ostream &to, const Case &c) {
  to << "sequence " << c.sequence << ", heads " << c.heads << "/" << c.kvHeads
     << " of " << c.d << ", batch " << c.batch << ", causal " << c.causal
     << ", window " << c.window << ", gap " << c.gap << ", part " << c.part
     << " of " << c.parts << ", keys of " << c.keysOf << ", documents";
  for (int begin : c.begins)
    to << " " << begin;
  return to;
}
/// MESHWORK_WGMMA_CASES: how many; MESHWORK_WGMMA_SEED: others.
TEST_F(Wgmma, AnyCase) {
  auto setting = [](const char *name, int otherwise) {
    const char *text = std::getenv(name);
    return text ? std::atoi(text) : otherwise;
  };
  std::mt19937 random(static_cast<unsigned>(setting("MESHWORK_WGMMA_SEED", 1)));
  for (int left = setting("MESHWORK_WGMMA_CASES", 8); left > 0; --left) {
    Case c = drawCase(random);
    std::ostringstream text;
    text << c;
    SCOPED_TRACE(text.str());
    expectCase(c);
    if (HasFailure())
      return;
  }
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

TEST_F(Wgmma, OtherRegistersAreRefused) {
  Driver other = *on.driver;
  auto expectRefused = [&](const char *text) {
    absl::Status status = WgmmaKernels::load(other, on.device).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_NE(status.message().find(text), std::string::npos) << status;
  };
  other.functionGetAttribute = [](int *value, int attribute, Function) {
    *value = attribute == functionAttribute::registers ? 128 : 0;
    return result::success;
  };
  expectRefused("\"wgmmaForward64\" with 128 registers a thread and 0 bytes of "
                "local memory, expected 168 and 0");
  other.functionGetAttribute = [](int *value, int attribute, Function) {
    *value = attribute == functionAttribute::registers ? 168 : 16;
    return result::success;
  };
  expectRefused("168 registers a thread and 16 bytes of local memory");
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
