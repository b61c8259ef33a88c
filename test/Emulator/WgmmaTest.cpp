// wgmma against sums of integers, which bf16 and f32 hold exactly.
#include "test/Emulator/Hopper.h"

namespace meshwork::ptx {
namespace {

constexpr unsigned m = 64, depth = 64;

struct Case {
  unsigned n;
  bool aInRegisters, aTransposed, bTransposed;
  int aScale = 1;
};

/// A matrix in shared memory with 128-byte swizzle: 64 elements of the inner
/// dim in a row of 128 bytes, blocks of 64 one after the other.
struct Stored {
  unsigned count; // of M or N
  bool transposed;
  unsigned index(unsigned mn, unsigned k) const {
    unsigned row = transposed ? k : mn, inner = transposed ? mn % 64 : k;
    unsigned block = transposed ? mn / 64 * depth : 0;
    unsigned chunk = (inner / 8) ^ (row % 8);
    return (block + row) * 64 + chunk * 8 + inner % 8;
  }
  unsigned bytes() const { return count * depth * 2; }
  /// How far 16 elements along k are.
  unsigned step() const { return transposed ? 16 * 128 : 32; }
  uint64_t descriptor() const {
    uint64_t leading = transposed ? depth * 128 : 16, stride = 1024;
    return 1ull << 62 | (stride >> 4) << 32 | (leading >> 4) << 16;
  }
};

/// `in`: A and B as they lie in shared memory, then A row by row.
struct Problem {
  explicit Problem(const Case &c)
      : c(c), a{m, c.aTransposed}, b{c.n, c.bTransposed},
        in((2 * m + c.n) * depth), out(m * c.n), expected(m * c.n) {
    std::mt19937 random(c.n);
    auto next = [&] { return int(random() % 17) - 8; };
    std::vector<int> left(m * depth), right(c.n * depth);
    for (unsigned i = 0; i < left.size(); ++i) {
      left[i] = next();
      in[a.index(i / depth, i % depth)] = toBf16(left[i]);
      in[(m + c.n) * depth + i] = toBf16(left[i]);
    }
    for (unsigned i = 0; i < right.size(); ++i) {
      right[i] = next();
      in[m * depth + b.index(i / depth, i % depth)] = toBf16(right[i]);
    }
    for (unsigned i = 0; i < expected.size(); ++i)
      for (unsigned k = 0; k < depth; ++k)
        expected[i] += float(c.aScale * left[i / c.n * depth + k] *
                             right[i % c.n * depth + k]);
  }
  std::string product(unsigned step) const; // 16 of K
  std::string text() const;

  Case c;
  Stored a, b;
  Buffer<uint16_t> in;
  Buffer<float> out;
  std::vector<float> expected;
};

/// All threads copy A and B to shared memory.
std::string copyToShared(unsigned bytes) {
  return absl::StrCat("shl.b32 %r0, %thread, 4;\nCOPY: cvt.u64.u32 %rd0, %r0;\n"
                      "add.s64 %rd0, %in, %rd0; add.u32 %r1, %tile, %r0;\n"
                      "ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd0];\n"
                      "st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5};\n"
                      "add.u32 %r0, %r0, 2048; setp.lt.u32 %p0, %r0, ",
                      bytes, "; @%p0 bra COPY;\n");
}
/// The registers of A of a step.
std::string fragment(unsigned step) {
  unsigned r = 10 + 4 * step;
  return absl::StrCat("{%r", r, ", %r", r + 1, ", %r", r + 2, ", %r", r + 3,
                      "}");
}
/// Each step has its own registers: they are read at the wait.
std::string loadFragments(unsigned from) {
  std::string text = addressOfFragment("%in", depth * 2, 2);
  const unsigned offsets[] = {0, 8 * depth * 2, 16, 8 * depth * 2 + 16};
  for (unsigned step = 0; step < depth / 16; ++step)
    for (unsigned i = 0; i < 4; ++i)
      absl::StrAppend(&text, "ld.global.b32 %r", 10 + 4 * step + i, ", [%rd0+",
                      from + step * 32 + offsets[i], "];\n");
  return text;
}

std::string Problem::product(unsigned step) const {
  std::string text =
      setDescriptor(1, a.descriptor(), step * a.step()) +
      setDescriptor(2, b.descriptor(), a.bytes() + step * b.step());
  absl::StrAppend(&text, "setp.ne.u32 %p1, ", step, ", 0;\n",
                  "wgmma.mma_async.sync.aligned.m64n", c.n,
                  "k16.f32.bf16.bf16 {", registerList(c.n / 2), "}, ",
                  c.aInRegisters ? fragment(step) : "%rd1", ", %rd2, %p1, ",
                  c.aScale, ", 1, ");
  if (!c.aInRegisters)
    absl::StrAppend(&text, int(c.aTransposed), ", ");
  absl::StrAppend(&text, int(c.bTransposed), ";\n");
  return text;
}

std::string Problem::text() const {
  std::string text = copyToShared(a.bytes() + b.bytes());
  text += "fence.proxy.async.shared::cta; bar.sync 0;\n";
  if (c.aInRegisters)
    text += loadFragments(a.bytes() + b.bytes());
  text += "wgmma.fence.sync.aligned;\n";
  for (unsigned step = 0; step < depth / 16; ++step)
    text += product(step);
  text += "wgmma.commit_group.sync.aligned;\n"
          "wgmma.wait_group.sync.aligned 0;\n";
  return text + storeSums(c.n);
}

absl::Status run(const Problem &problem, const std::string &text) {
  return runHopper(text, 128, problem.a.bytes() + problem.b.bytes(),
                   problem.out, problem.in);
}
/// A kernel in which `what` is missing fails with `why`.
::testing::AssertionResult failsWithout(const std::string &what,
                                        const std::string &why) {
  Problem problem({64, false, false, false});
  return failsWith(
      run(problem, absl::StrReplaceAll(problem.text(), {{what, ""}})), why);
}

TEST(Wgmma, Products) {
  const Case cases[] = {
      {64, false, false, false},    {128, false, false, false},
      {64, false, true, true},      {128, false, false, true},
      {128, true, false, false},    {64, true, false, true},
      {256, false, true, true},     {8, false, false, false},
      {64, false, false, false, -1}};
  for (const Case &c : cases) {
    SCOPED_TRACE(absl::StrCat("n ", c.n, ", A in registers ", c.aInRegisters,
                              ", transposed ", c.aTransposed, c.bTransposed));
    Problem problem(c);
    absl::Status status = run(problem, problem.text());
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(std::vector<float>(problem.out.begin(), problem.out.end()),
              problem.expected);
  }
}

TEST(Wgmma, WhatIsMissingIsFound) {
  EXPECT_TRUE(failsWithout("wgmma.wait_group.sync.aligned 0;",
                           "the warp ends without a wgmma.wait_group"));
  EXPECT_TRUE(failsWithout("wgmma.commit_group.sync.aligned;",
                           "the warp ends without a wgmma.wait_group"));
  EXPECT_TRUE(failsWithout("wgmma.fence.sync.aligned;", "no wgmma.fence"));
  EXPECT_TRUE(failsWithout("fence.proxy.async.shared::cta;",
                           "without a fence.proxy.async after it"));
  EXPECT_TRUE(failsWithout("bar.sync 0;", "race at shared address"));
}
TEST(Wgmma, SumsAreThereAfterTheWait) {
  Problem problem({64, false, false, false});
  std::string text = absl::StrReplaceAll(
      problem.text(), {{"wgmma.wait_group.sync.aligned 0;", ""}});
  text += "wgmma.wait_group.sync.aligned 0;\n";
  absl::Status status = run(problem, text);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(std::isnan(problem.out[0]));
}
TEST(Wgmma, AllWarpsOfAWarpgroupExecuteTheSame) {
  Problem problem({64, false, false, false});
  const std::string fence = "wgmma.fence.sync.aligned;";
  auto with = [&](const std::string &inserted) {
    return run(problem,
               absl::StrReplaceAll(problem.text(), {{fence, inserted}}));
  };
  EXPECT_TRUE(failsWith(with("setp.eq.u32 %p2, %warp, 2; @%p2 exit;" + fence),
                        "did not execute this product"));
  EXPECT_TRUE(failsWith(with("setp.eq.u32 %p2, %warp, 2;\n"
                             "@%p2 add.u32 %tile, %tile, 1024;" +
                             fence),
                        "with other descriptors"));
}
TEST(Wgmma, DescriptorsAreChecked) {
  Problem problem({64, false, false, false});
  auto with = [&](uint64_t descriptor) {
    std::string good = absl::StrCat(problem.a.descriptor());
    return run(problem,
               absl::StrReplaceAll(problem.text(),
                                   {{good, absl::StrCat(descriptor)}}));
  };
  uint64_t good = problem.a.descriptor();
  EXPECT_TRUE(failsWith(with(good ^ 3ull << 62), "only the layout with"));
  EXPECT_TRUE(
      failsWith(with(good | 1ull << 49), "a base offset or reserved bits"));
  EXPECT_TRUE(failsWith(with(good | 8), "a multiple of 1024 bytes"));
  EXPECT_TRUE(failsWith(with(good + (8ull << 32)), "a multiple of 1024 bytes"));
  EXPECT_TRUE(failsWith(with(good + (0x1000ull << 32)),
                        "illegal read of 16 bytes at shared address"));
}

} // namespace
} // namespace meshwork::ptx
