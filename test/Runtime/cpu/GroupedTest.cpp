// Products of experts' rows, against loops in double precision.
//
// Tolerance: as of Matmul (MatmulTest.cpp), by the number of terms of a sum.
#include <algorithm>

#include <gtest/gtest.h>

#include "test/Runtime/cpu/TestProgram.h"
#include "test/Support/Experts.h"

namespace meshwork::runtime::test {
using namespace meshwork::test;
namespace {

struct Case {
  std::vector<int64_t> rows; // of each expert
  int64_t k, n;
  DType in = DType::f32, out = DType::f32;
  bool transposed = false; // of the matrices, K is dense
  int64_t behind = 0;      // rows of no expert
  int64_t padding = 0;     // elements between rows

  int64_t experts() const { return static_cast<int64_t>(rows.size()); }
  int64_t all() const {
    int64_t sum = behind;
    for (int64_t count : rows)
      sum += count;
    return sum;
  }
  Values begins() const {
    Values begins = {0};
    for (int64_t count : rows)
      begins.push_back(begins.back() + count);
    return begins;
  }
  double tolerance(int64_t terms) const {
    double f32 = 4.0 * (terms + 1) * 0x1p-24;
    return out == DType::bf16 ? f32 + (terms + 2) * 0x1p-9 : f32;
  }
};

const std::vector<int64_t> mixed = {3, 0, 17, 1, 0, 40};

uint32_t addRows(TestProgram &program, DType type, int64_t rows,
                 int64_t columns, int64_t padding) {
  int64_t ld = columns + padding;
  return program.addView(program.addBuffer(type, rows * ld), type,
                         {rows, columns}, {ld, 1});
}

/// [experts, k, n].
uint32_t addMatrices(TestProgram &program, DType type, const Case &c) {
  int64_t ld = (c.transposed ? c.k : c.n) + c.padding;
  int64_t size = (c.transposed ? c.n : c.k) * ld;
  return program.addView(program.addBuffer(type, c.experts() * size), type,
                         {c.experts(), c.k, c.n},
                         {size, c.transposed ? 1 : ld, c.transposed ? ld : 1});
}

struct Product {
  TestProgram program;
  plan::GroupedProductT op;
  Case c;
  Values lhs, rhs, begins;

  explicit Product(const Case &c)
      : c(c), lhs(randomValues(c.all() * c.k, c.in, 1)),
        rhs(randomValues(c.experts() * c.k * c.n, c.in, 2)),
        begins(c.begins()) {
    op.lhs = addRows(program, c.in, c.all(), c.k, c.padding);
    op.rhs = addMatrices(program, c.in, c);
    op.begins = program.add(DType::i32, {c.experts() + 1}, begins);
    op.out = addRows(program, c.out, c.all(), c.n, c.padding);
    program.write(op.lhs, lhs);
    program.write(op.rhs, rhs);
  }

  Values expected() const {
    Values out(c.all() * c.n);
    int64_t e = 0;
    for (auto [begin, end] : rangesOf(begins, c.all())) {
      for (int64_t r = begin; r < end; ++r)
        for (int64_t k = 0; k < c.k; ++k)
          for (int64_t n = 0; n < c.n; ++n)
            out[r * c.n + n] += lhs[r * c.k + k] * rhs[(e * c.k + k) * c.n + n];
      ++e;
    }
    return out;
  }

  Values run(int threads) {
    program.write(op.begins, begins);
    absl::Status status = program.run(op, {.threads = threads});
    EXPECT_TRUE(status.ok()) << status;
    return program.read(op.out);
  }
};

struct Gradient {
  TestProgram program;
  plan::GroupedGradientT op;
  Case c;
  Values lhs, rhs, begins, before;

  explicit Gradient(const Case &c)
      : c(c), lhs(randomValues(c.all() * c.k, c.in, 1)),
        rhs(randomValues(c.all() * c.n, c.in, 2)), begins(c.begins()),
        before(randomValues(c.experts() * c.k * c.n, c.out, 3)) {
    op.lhs = addRows(program, c.in, c.all(), c.k, c.padding);
    op.rhs = addRows(program, c.in, c.all(), c.n, c.padding);
    op.begins = program.add(DType::i32, {c.experts() + 1}, begins);
    op.dst = addMatrices(program, c.out, c);
    program.write(op.lhs, lhs);
    program.write(op.rhs, rhs);
  }

  Values expected(bool adds) const {
    Values dst = adds ? before : Values(before.size());
    int64_t e = 0;
    for (auto [begin, end] : rangesOf(begins, c.all())) {
      for (int64_t r = begin; r < end; ++r)
        for (int64_t k = 0; k < c.k; ++k)
          for (int64_t n = 0; n < c.n; ++n)
            dst[(e * c.k + k) * c.n + n] += lhs[r * c.k + k] * rhs[r * c.n + n];
      ++e;
    }
    return dst;
  }

  Values run(int threads, uint32_t microbatch, bool adds) {
    program.write(op.begins, begins);
    if (adds) // Otherwise what is there must not be read.
      program.write(op.dst, before);
    absl::Status status =
        program.run(op, {.threads = threads, .microbatch = microbatch});
    EXPECT_TRUE(status.ok()) << status;
    return program.read(op.dst);
  }
};

std::string describe(const Case &c) {
  return "k " + std::to_string(c.k) + " n " + std::to_string(c.n) + " of " +
         plan::EnumNameDType(c.in) + " to " + plan::EnumNameDType(c.out) +
         (c.transposed ? " transposed" : "");
}

void check(const Case &c) {
  SCOPED_TRACE(describe(c));
  Values one = Product(c).run(1);
  EXPECT_LE(maxDifference(one, Product(c).expected()), c.tolerance(c.k));
  EXPECT_EQ(Product(c).run(3), one);
  int64_t most = *std::max_element(c.rows.begin(), c.rows.end());
  for (auto mode : {plan::Accumulate::no, plan::Accumulate::yes,
                    plan::Accumulate::after_first})
    for (uint32_t microbatch : {0u, 1u}) {
      bool adds = mode == plan::Accumulate::yes ||
                  (mode == plan::Accumulate::after_first && microbatch > 0);
      auto run = [&](int threads) {
        Gradient gradient(c);
        gradient.op.accumulate = mode;
        return gradient.run(threads, microbatch, adds);
      };
      Values found = run(1);
      EXPECT_LE(maxDifference(found, Gradient(c).expected(adds)),
                c.tolerance(most));
      EXPECT_EQ(run(3), found);
    }
}

template <typename Check> void forEachType(Check check) {
  check(DType::f32, DType::f32);
  check(DType::bf16, DType::bf16);
  check(DType::bf16, DType::f32);
}

TEST(Grouped, OddSizesOfEveryTypeAndLayout) {
  forEachType([](DType in, DType out) {
    for (int64_t k : {1, 7, 70})
      for (int64_t n : {1, 16, 67})
        for (bool transposed : {false, true})
          check({mixed, k, n, in, out, transposed, 0, 0});
  });
}

TEST(Grouped, SeveralSlicesPanelsAndBlocks) {
  forEachType([](DType in, DType out) {
    check({{250, 0, 3, 301}, 297, 797, in, out, false, 2, 3});
    check({{1, 260}, 800, 280, in, out, true, 5, 1});
  });
}

TEST(Grouped, ExpertsWithoutRows) {
  forEachType([](DType in, DType out) {
    check({{0, 0, 5}, 20, 33, in, out, false, 3, 0});
    check({{0, 0, 0}, 20, 33, in, out, true, 3, 0});
    check({{1}, 20, 33, in, out});
    check({{0, 30, 0}, 20, 33, in, out});
  });
}

/// A row has the bits that it has with no other row and no other expert; a
/// gradient those that it has with no other expert.
TEST(Grouped, BitsAreOfARowsOwnExpertAlone) {
  forEachType([](DType in, DType out) {
    Case c{{70, 2, 130}, 300, 290, in, out};
    Product all(c);
    Values whole = all.run(3);
    for (int64_t row : {0, 69, 71, 72, 201}) {
      int64_t expert = row < 70 ? 0 : row < 72 ? 1 : 2;
      Case single = c;
      single.rows = {0, 0, 0};
      single.rows[expert] = 1;
      Product one(single);
      one.program.write(one.op.lhs, Values(all.lhs.begin() + row * c.k,
                                           all.lhs.begin() + (row + 1) * c.k));
      EXPECT_EQ(one.run(2), Values(whole.begin() + row * c.n,
                                   whole.begin() + (row + 1) * c.n));
    }
    Gradient gradient(c);
    Values sums = gradient.run(3, 0, false);
    Case third = c;
    third.rows = {0, 0, 130};
    Gradient alone(third);
    alone.program.write(alone.op.lhs, Values(gradient.lhs.begin() + 72 * c.k,
                                             gradient.lhs.end()));
    alone.program.write(alone.op.rhs, Values(gradient.rhs.begin() + 72 * c.n,
                                             gradient.rhs.end()));
    Values own = alone.run(1, 0, false);
    int64_t begin = 2 * c.k * c.n;
    EXPECT_TRUE(
        std::equal(sums.begin() + begin, sums.end(), own.begin() + begin));
  });
}

TEST(Grouped, StaysInsideWhateverBeginsHold) {
  const Values hostile[] = {{0, 30, 10, 61, 61, 61, 61},
                            {61, 50, 40, 30, 20, 10, 0},
                            {lowest, highest, lowest, highest, 0, 1, 2},
                            {-5, -4, 20, 1000, 7, 61, 62},
                            {highest, highest, highest, 0, 0, 0, 0},
                            {5, 5, 5, 9, 9, 20, 20}};
  forEachType([&](DType in, DType out) {
    for (const Values &begins : hostile) {
      Case c{mixed, 37, 50, in, out};
      ASSERT_EQ(c.all(), 61);
      Product product(c);
      product.begins = begins;
      Values found = product.run(3);
      EXPECT_LE(maxDifference(found, product.expected()), c.tolerance(c.k));
      Gradient gradient(c);
      gradient.begins = begins;
      found = gradient.run(3, 0, false);
      EXPECT_LE(maxDifference(found, gradient.expected(false)),
                c.tolerance(61));
    }
  });
}

TEST(Grouped, RefusesOtherTypesAndShapes) {
  std::string at = "instruction \"under.test\" (GroupedProduct): ";
  Product types({mixed, 8, 8});
  types.op.rhs = types.program.add(DType::bf16, {6, 8, 8});
  EXPECT_EQ(types.program.run(types.op).message(),
            at + "multiplies f32 by bf16 into f32, expected f32 by f32 into "
                 "f32, or bf16 by bf16 into f32 or bf16");
  Product shapes({mixed, 8, 8});
  shapes.op.rhs = shapes.program.add(DType::f32, {6, 9, 8});
  EXPECT_EQ(shapes.program.run(shapes.op).message(),
            at + "rhs is f32[6, 9, 8] with strides [72, 8, 1], expected shape "
                 "[6, 8, 8]");
  Product begins({mixed, 8, 8});
  begins.op.begins = begins.program.add(DType::i32, {6});
  EXPECT_EQ(begins.program.run(begins.op).message(),
            at + "there are 6 begins, expected 7");
  Gradient strides({mixed, 8, 8});
  strides.op.dst =
      strides.program.addView(strides.program.addBuffer(DType::f32, 2000),
                              DType::f32, {6, 8, 8}, {256, 16, 2});
  EXPECT_EQ(strides.program.run(strides.op).message(),
            "instruction \"under.test\" (GroupedGradient): dst is f32[6, 8, 8] "
            "with strides [256, 16, 2], expected stride 1 in one of the two "
            "inner dims");
}

} // namespace
} // namespace meshwork::runtime::test
