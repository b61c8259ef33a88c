// Embedding, EmbeddingGrad, RotaryTable, Fill and CopyBlock: exact, but for the
// order of sums, which the references below repeat.
#include <cmath>

#include <gtest/gtest.h>

#include "test/Runtime/cpu/TestProgram.h"

namespace meshwork::runtime::test {
namespace {

const Values someIds = {3, 0, 3, 6, 2, 3, 0, 6, 5, 3};

TEST(Embedding, PicksRows) {
  for (DType from : {DType::f32, DType::bf16})
    for (DType to : {DType::f32, DType::bf16}) {
      TestProgram program;
      Values table = randomValues(7 * 33, from, 1);
      plan::EmbeddingT op;
      op.table = program.add(from, {7, 33}, table);
      op.ids = program.add(DType::i32, {2, 5}, someIds);
      op.out = program.add(to, {2, 5, 33});
      absl::Status status = program.run(op, {.threads = 3});
      ASSERT_TRUE(status.ok()) << status;
      Values out = program.read(op.out);
      for (int i = 0; i < 10; ++i)
        for (int e = 0; e < 33; ++e)
          EXPECT_EQ(out[i * 33 + e],
                    roundTo(to, table[int(someIds[i]) * 33 + e]));
    }
}

TEST(Embedding, PaddedRowsAndSeveralInnerDims) {
  TestProgram program;
  Values table = randomValues(7 * 12, DType::f32, 1);
  plan::EmbeddingT op;
  op.table = program.addView(program.addBuffer(DType::f32, 7 * 20), DType::f32,
                             {7, 3, 4}, {20, 4, 1});
  program.write(op.table, table);
  op.ids = program.add(DType::i32, {10}, someIds);
  op.out = program.add(DType::f32, {10, 12});
  ASSERT_TRUE(program.run(op).ok());
  EXPECT_EQ(program.read(op.out)[12 * 3 + 5], table[12 * 6 + 5]);
}

TEST(Embedding, AnIdOutsideTheTableGivesNaNs) {
  TestProgram program;
  plan::EmbeddingT op;
  op.table = program.add(DType::f32, {4, 3}, Values(12, 1));
  op.ids = program.add(DType::i32, {3}, {-1, 3, 4});
  op.out = program.add(DType::f32, {3, 3});
  ASSERT_TRUE(program.run(op).ok());
  Values out = program.read(op.out);
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[8]));
  EXPECT_EQ(out[4], 1);
}

// Two shards of a table of seven rows, the second one row short: their results
// add up to the whole table's.
TEST(Embedding, ShardsAddUpToTheWhole) {
  Values table = randomValues(8 * 33, DType::f32, 1), sum(10 * 33, 0);
  for (int first : {0, 4}) {
    TestProgram program;
    plan::EmbeddingT op;
    op.table = program.add(
        DType::f32, {4, 33},
        Values(table.begin() + first * 33, table.begin() + (first + 4) * 33));
    op.ids = program.add(DType::i32, {10}, someIds);
    op.out = program.add(DType::f32, {10, 33});
    op.first_row = program.add(DType::i32, {1}, {double(first)});
    ASSERT_TRUE(program.run(op, {.threads = 3}).ok());
    Values out = program.read(op.out);
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += out[i];
  }
  for (int i = 0; i < 10; ++i)
    for (int e = 0; e < 33; ++e)
      EXPECT_EQ(sum[i * 33 + e], table[int(someIds[i]) * 33 + e]);
}

/// Sums of one microbatch in f32 and in order, one rounding per row.
Values expectedGradient(const Values &ids, const Values &dout,
                        const Values &before, int64_t width, DType dtype) {
  Values result = before;
  for (size_t row = 0; row < before.size() / width; ++row)
    for (int64_t e = 0; e < width; ++e) {
      float sum = 0;
      bool any = false;
      for (size_t i = 0; i < ids.size(); ++i)
        if (ids[i] == static_cast<double>(row)) {
          sum += static_cast<float>(dout[i * width + e]);
          any = true;
        }
      double &to = result[row * width + e];
      if (any)
        to = roundTo(dtype, static_cast<float>(to) + sum);
    }
  return result;
}

TEST(EmbeddingGrad, SumsInOrder) {
  constexpr int64_t width = 19;
  for (DType dtype : {DType::f32, DType::bf16})
    for (int threads : {1, 2, 3, 8})
      for (uint32_t microbatch : {0u, 1u}) {
        TestProgram program;
        Values dout = randomValues(10 * width, dtype, 5);
        Values before = randomValues(7 * width, dtype, 6);
        plan::EmbeddingGradT op;
        op.ids = program.add(DType::i32, {10}, someIds);
        op.dout = program.add(dtype, {10, width}, dout);
        op.dtable = program.add(dtype, {7, width});
        op.accumulate = plan::Accumulate::after_first;
        if (microbatch > 0)
          program.write(op.dtable, before);
        else
          before.assign(7 * width, 0); // The NaNs there must vanish.
        absl::Status status =
            program.run(op, {.threads = threads, .microbatch = microbatch});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(program.read(op.dtable),
                  expectedGradient(someIds, dout, before, width, dtype))
            << threads << " threads";
      }
}

TEST(EmbeddingGrad, AShardTakesItsRowsOnly) {
  Values dout = randomValues(10 * 5, DType::f32, 5), whole, shards;
  auto gradient = [&](int rows, int first) {
    TestProgram program;
    plan::EmbeddingGradT op;
    op.ids = program.add(DType::i32, {10}, someIds);
    op.dout = program.add(DType::f32, {10, 5}, dout);
    op.dtable = program.add(DType::f32, {rows, 5});
    if (rows < 8)
      op.first_row = program.add(DType::i32, {}, {double(first)});
    EXPECT_TRUE(program.run(op).ok());
    return program.read(op.dtable);
  };
  whole = gradient(8, 0);
  for (int first : {0, 4}) {
    Values part = gradient(4, first);
    shards.insert(shards.end(), part.begin(), part.end());
  }
  EXPECT_EQ(shards, whole);
}

TEST(EmbeddingGrad, LeavesOutIdsOutsideTheTable) {
  TestProgram program;
  plan::EmbeddingGradT op;
  op.ids = program.add(DType::i32, {4}, {-7, 1, 3, 2147483647});
  op.dout = program.add(DType::f32, {4, 2}, Values(8, 1));
  op.dtable = program.add(DType::f32, {3, 2});
  ASSERT_TRUE(program.run(op).ok());
  EXPECT_EQ(program.read(op.dtable), (Values{0, 0, 1, 1, 0, 0}));
}

TEST(EmbeddingGrad, RefusesRowsThatDoNotFit) {
  TestProgram program;
  plan::EmbeddingGradT op;
  op.ids = program.add(DType::i32, {4}, Values(4, 0));
  op.dout = program.add(DType::f32, {4, 3});
  op.dtable = program.add(DType::f32, {3, 2});
  EXPECT_EQ(program.run(op).message(),
            "instruction \"under.test\" (EmbeddingGrad): dout is f32[4, 3] "
            "with strides [3, 1], expected 4 rows of 2 elements, as ids and "
            "dtable have");
}

TEST(RotaryTable, FollowsItsFormula) {
  TestProgram program;
  plan::RotaryTableT op;
  op.cos = program.add(DType::f32, {300, 6});
  op.sin = program.add(DType::f32, {300, 6});
  op.inverse_frequencies = {1.0f, 0.1f, 0.0123f};
  op.scale = 1.25f;
  ASSERT_TRUE(program.run(op, {.threads = 3}).ok());
  Values cos = program.read(op.cos), sin = program.read(op.sin);
  for (int position = 0; position < 300; ++position)
    for (int i = 0; i < 6; ++i) {
      float angle =
          static_cast<float>(position) * op.inverse_frequencies[i % 3];
      float c = static_cast<float>(std::cos(double{angle})) * 1.25f;
      float s = static_cast<float>(std::sin(double{angle})) * 1.25f;
      EXPECT_EQ(cos[position * 6 + i], c);
      EXPECT_EQ(sin[position * 6 + i], i < 3 ? -s : s);
    }
}

TEST(RotaryTable, RefusesAWrongNumberOfFrequencies) {
  TestProgram program;
  plan::RotaryTableT op;
  op.cos = program.add(DType::f32, {4, 6});
  op.sin = program.add(DType::f32, {4, 6});
  op.inverse_frequencies = {1.0f};
  EXPECT_EQ(program.run(op).message(),
            "instruction \"under.test\" (RotaryTable): has 1 frequencies for "
            "6 columns, expected half as many");
}

TEST(Fill, EveryTypeAndNothingBeside) {
  for (DType dtype : {DType::f32, DType::bf16, DType::i32}) {
    TestProgram program;
    uint32_t buffer = program.addBuffer(dtype, 100);
    uint32_t all = program.addView(buffer, dtype, {100});
    plan::FillT op;
    op.dst = program.addView(buffer, dtype, {9, 10}, {10, 1}, 5);
    op.value = 2.75f;
    program.write(all, Values(100, 1));
    ASSERT_TRUE(program.run(op, {.threads = 3}).ok());
    Values values = program.read(all);
    double filled = dtype == DType::i32 ? 2 : 2.75;
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(values[i], i >= 5 && i < 95 ? filled : 1);
  }
}

TEST(Fill, LeavesWhatLiesBetweenRows) {
  TestProgram program;
  uint32_t buffer = program.addBuffer(DType::bf16, 100);
  uint32_t all = program.addView(buffer, DType::bf16, {100});
  plan::FillT op;
  op.dst = program.addView(buffer, DType::bf16, {4, 5}, {20, 1}, 3);
  op.value = 2.75f;
  program.write(all, Values(100, 1));
  ASSERT_TRUE(program.run(op, {.threads = 3}).ok());
  Values values = program.read(all);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(values[i], i < 80 && i % 20 >= 3 && i % 20 < 8 ? 2.75 : 1) << i;
}

TEST(Fill, RefusesGapsInRows) {
  TestProgram program;
  plan::FillT op;
  op.dst = program.addView(program.addBuffer(DType::f32, 100), DType::f32,
                           {4, 5}, {20, 2});
  EXPECT_EQ(program.run(op).message(),
            "instruction \"under.test\" (Fill): dst is f32[4, 5] with strides "
            "[20, 2], expected dense elements or rows");
}

/// Rows [first, first + 3) of dim 1 of a [2, 7, 4] tensor, zeros from row 7 on.
TEST(CopyBlock, CutsAndPads) {
  for (DType dtype : {DType::f32, DType::bf16, DType::i32})
    for (int first : {0, 2, 5, 6, 9, -1}) {
      TestProgram program;
      uint32_t buffer = program.addBuffer(dtype, 100);
      // Rows lie 5 elements apart.
      uint32_t src = program.addView(buffer, dtype, {2, 7, 4}, {35, 5, 1});
      Values values(56);
      for (int i = 0; i < 56; ++i)
        values[i] = i + 1;
      program.write(src, values);
      plan::CopyBlockT op;
      op.src = src;
      op.dst = program.add(dtype, {2, 3, 4});
      op.dim = 1;
      op.first = program.add(DType::i32, {1}, {static_cast<double>(first)});
      absl::Status status = program.run(op, {.threads = 3});
      ASSERT_TRUE(status.ok()) << status;
      Values found = program.read(op.dst);
      for (int b = 0; b < 2; ++b)
        for (int i = 0; i < 3; ++i)
          for (int e = 0; e < 4; ++e) {
            bool isIn = first >= 0 && first + i < 7;
            double expected = isIn ? values[(b * 7 + first + i) * 4 + e] : 0;
            EXPECT_EQ(found[(b * 3 + i) * 4 + e], expected) << first;
          }
    }
}

TEST(CopyBlock, RefusesOtherShapesAndTypes) {
  auto run = [](DType type, Dims shape, int dim) {
    TestProgram program;
    plan::CopyBlockT op;
    op.src = program.add(DType::f32, {2, 7});
    op.dst = program.add(type, shape);
    op.dim = dim;
    op.first = program.add(DType::i32, {1}, {0});
    return std::string(program.run(op).message());
  };
  std::string at = "instruction \"under.test\" (CopyBlock): ";
  EXPECT_EQ(run(DType::bf16, {2, 3}, 1),
            at + "dst is bf16[2, 3] with strides [3, 1], expected f32");
  EXPECT_EQ(run(DType::f32, {3, 3}, 1),
            at + "dst is f32[3, 3] with strides [3, 1], expected shape [2, 3]");
  EXPECT_EQ(run(DType::f32, {2, 3}, 2), at + "dim is none of its tensors'");
}

} // namespace
} // namespace meshwork::runtime::test
