// Attention by wgmma against double precision, by the bounds of
// test/Emulator/attention/Reference.h. On a real GPU of compute capability 9.0,
// or on the emulated one.
#include "runtime/core/Bf16.h"
#include "runtime/device/cuda/WgmmaAttention.h"
#include "test/Emulator/attention/Reference.h"
#include "test/Runtime/cpu/TestProgram.h"
#include "test/Runtime/cuda/TestDevice.h"
#include <algorithm>
#include <climits>
#include <cmath>

namespace meshwork::runtime::cuda::test {
namespace {
using attention::test::Case;
using attention::test::Inputs;
using attention::test::Reference;
using attention::test::Result;
using attention::test::Values;

/// [batch, rows, heads, d] of bf16 with the gaps of a case, which nothing
/// writes.
class Tensor {
public:
  Tensor(TestDevice &on, const Case &c, long long heads)
      : on(on), c(c), heads(heads),
        bits(static_cast<size_t>(c.elements(heads, c.sequence)), unwritten),
        memory(on.allocate(bits.size() * 2 + 4096)) {
    on.write(memory, bits);
  }
  void set(const Values &values) {
    eachElement([&](size_t dense, size_t stored) {
      bits[stored] = toBf16(static_cast<float>(values[dense]));
    });
    on.write(memory, bits);
  }
  Values values() {
    std::vector<uint16_t> found = on.read<uint16_t>(memory, bits.size());
    Values dense(static_cast<size_t>(c.batch * c.sequence * heads * c.d));
    std::vector<bool> isElement(found.size());
    eachElement([&](size_t to, size_t from) {
      dense[to] = static_cast<double>(fromBf16(found[from]));
      isElement[from] = true;
    });
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(isElement[i] || found[i] == unwritten) << "between rows";
    return dense;
  }
  DevicePtr at() const { return memory + static_cast<DevicePtr>(c.gap) * 2; }
  AttentionTensor described() const {
    return {{c.batch, heads, c.sequence, c.d},
            {c.sampleStride(heads, c.sequence), c.headStride(),
             c.positionStride(heads), 1}};
  }

private:
  static constexpr uint16_t unwritten = 0x4049;
  template <typename Visit> void eachElement(Visit visit) const {
    size_t dense = 0;
    for (long long b = 0; b < c.batch; ++b)
      for (long long i = 0; i < c.sequence; ++i)
        for (long long h = 0; h < heads; ++h)
          for (long long e = 0; e < c.d; ++e)
            visit(dense++,
                  static_cast<size_t>(
                      c.gap + b * c.sampleStride(heads, c.sequence) +
                      i * c.positionStride(heads) + h * c.headStride() + e));
  }

  TestDevice &on;
  const Case &c;
  long long heads;
  std::vector<uint16_t> bits;
  DevicePtr memory;
};

struct Outcome {
  Values out, lse, dq, dk, dv;
};

class Wgmma : public testing::Test {
protected:
  Wgmma() : kernels(load(on)) {}

  static std::unique_ptr<WgmmaKernels> load(TestDevice &on) {
    auto loaded = WgmmaKernels::load(*on.driver, on.device);
    expectOk(loaded.status());
    return *std::move(loaded);
  }

  static Inputs inputsOf(const Case &c) {
    auto random = [&](long long heads, unsigned seed) {
      return runtime::test::randomValues(c.batch * c.sequence * heads * c.d,
                                         plan::DType::bf16, seed);
    };
    return {random(c.heads, 11),
            random(c.kvHeads, 12),
            random(c.kvHeads, 13),
            random(c.heads, 14),
            0,
            0,
            0,
            0,
            documentsOf(c)};
  }
  static std::vector<int> documentsOf(const Case &c) {
    std::vector<int> documents;
    for (long long b = 0; b < c.batch; ++b)
      for (long long i = 0; i < c.sequence; ++i)
        documents.push_back(static_cast<int>(documentOf(c, b, i)));
    return documents;
  }

  void run(Operation &operation) {
    expectOk(operation.enqueue(on.stream, false));
    on.synchronize();
  }

  Outcome outcomeOf(const Case &c, const Inputs &in) {
    Tensor q(on, c, c.heads), k(on, c, c.kvHeads), v(on, c, c.kvHeads),
        out(on, c, c.heads), dout(on, c, c.heads), dq(on, c, c.heads),
        dk(on, c, c.kvHeads), dv(on, c, c.kvHeads);
    q.set(in.q);
    k.set(in.k);
    v.set(in.v);
    dout.set(in.dout);
    AttentionProblem problem;
    problem.q = problem.dout = problem.dq = problem.out = q.described();
    problem.k = problem.v = problem.dk = problem.dv = k.described();
    problem.scale = c.scale;
    problem.causal = c.causal;
    problem.window = c.window;
    problem.lseStrides[0] = c.heads * c.sequence;
    problem.lseStrides[1] = c.sequence;
    size_t rows = static_cast<size_t>(c.batch * c.heads * c.sequence);
    uint64_t workspaceBytes = static_cast<uint64_t>(
        c.batch * c.heads * ((c.sequence + 127) / 128 * 128) * 8);
    AttentionPlaces places{};
    places.q = q.at();
    places.k = k.at();
    places.v = v.at();
    places.out = out.at();
    places.lse = on.allocate(rows * 4);
    places.dout = dout.at();
    places.dq = dq.at();
    places.dk = dk.at();
    places.dv = dv.at();
    problem.documents = c.documents;
    places.documents = on.allocate(in.documents.size() * 4);
    on.write(places.documents, in.documents);
    expectOk(WgmmaKernels::check(problem));
    auto forward = kernels->forward(problem, places);
    expectOk(forward.status());
    run(**forward);
    auto gradient = kernels->gradient(
        problem, places, on.allocate(workspaceBytes), workspaceBytes);
    expectOk(gradient.status());
    run(**gradient);
    std::vector<float> lse = on.read<float>(places.lse, rows);
    return {out.values(), Values(lse.begin(), lse.end()), dq.values(),
            dk.values(), dv.values()};
  }

  static void expectWithin(const char *what, const Values &found,
                           const Result &exact) {
    ASSERT_EQ(found.size(), exact.value.size());
    double worst = 0;
    size_t at = 0;
    for (size_t e = 0; e < found.size(); ++e) {
      double share = std::fabs(found[e] - exact.value[e]) / exact.bound[e];
      if (!(share <= worst)) {
        worst = std::isnan(share) ? INFINITY : share;
        at = e;
      }
    }
    EXPECT_LE(worst, 1) << what << " [" << at << "]: found " << found[at]
                        << ", expected " << exact.value[at] << " within "
                        << exact.bound[at];
  }

  void expectCase(const Case &c) {
    Inputs in = inputsOf(c);
    Reference exact = attend(c, in);
    Outcome found = outcomeOf(c, in);
    expectWithin("out", found.out, exact.out);
    expectWithin("lse", found.lse, exact.lse);
    expectWithin("dq", found.dq, exact.dq);
    expectWithin("dk", found.dk, exact.dk);
    expectWithin("dv", found.dv, exact.dv);
  }

  TestDevice on;
  std::unique_ptr<WgmmaKernels> kernels;
};

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

TEST_F(Wgmma, SameBitsEachRun) {
  Case c{.sequence = 260, .heads = 4, .kvHeads = 2};
  Inputs in = inputsOf(c);
  Outcome first = outcomeOf(c, in), second = outcomeOf(c, in);
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
  expectLeft(other, "2^30 blocks of rows or more");
  EXPECT_TRUE(absl::IsUnimplemented(
      kernels->gradient(problem, {}, 0, 2 * 128 * 8 - 1).status()));
}

} // namespace
} // namespace meshwork::runtime::cuda::test
