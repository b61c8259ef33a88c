// Row reductions: residual add, RMSNorm and LayerNorm with two results.
#include "test/Codegen/Clusters.h"
#include "test/Codegen/Kernel.h"

using namespace meshwork::codegen::test;
namespace {

TEST(RmsNorm, AgreesWithDoubles) {
  for (const std::string &arch : runnableArchs())
    for (auto [rows, cols] : {std::pair<int64_t, int64_t>{37, 768},
                              {3, 1},
                              {5, 8},
                              {7, 12},
                              {9, 100},
                              {2, 50257},
                              {130, 3}}) {
      Kernel kernel(fill(rmsNorm, {{"R", std::to_string(rows)},
                                   {"C", std::to_string(cols)},
                                   {"T", "f32"},
                                   {"I", std::to_string(1.0 / cols)}}),
                    arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      auto x = randomFloats(rows * cols),
           y = randomFloats(rows * cols, -1, 1, 2),
           w = randomFloats(cols, 0.5, 1.5, 3);
      std::vector<float> sum(x.size()), norm(x.size()), again(x.size());
      kernel.run({x.data(), y.data(), w.data(), sum.data(), norm.data()});
      double inverse = std::stof(std::to_string(1.0 / cols));
      for (int64_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (int64_t c = 0; c < cols; ++c)
          squares += std::pow(double(x[r * cols + c] + y[r * cols + c]), 2);
        double scale = 1 / std::sqrt(squares * inverse + 1e-5);
        for (int64_t c = 0; c < cols; ++c) {
          size_t i = r * cols + c;
          ASSERT_EQ(sum[i], x[i] + y[i]);
          expectNear(norm[i], sum[i] * scale * w[c], 2e-6, 1e-3, i);
        }
      }
      // In place, one item at a time: the same bits.
      kernel.run({x.data(), y.data(), w.data(), x.data(), again.data()}, 1);
      EXPECT_EQ(x, sum);
      EXPECT_EQ(again, norm);
    }
}

// Seven rows of twelve: an addition, a square and a sum, two products with the
// norm's factor and the weight for each element; mean, epsilon and root for
// each row only.
TEST(RmsNorm, FlopsAreCountedWhereTheyAreDone) {
  Kernel kernel(
      fill(rmsNorm, {{"R", "7"}, {"C", "12"}, {"T", "f32"}, {"I", "0.5"}}),
      runnableArchs()[0]);
  ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
  EXPECT_EQ(kernel.flops(), 7u * (12 * 5 + 3));
}

TEST(LayerNormGrad, AgreesWithDoubles) {
  for (const std::string &arch : runnableArchs())
    for (auto [rows, cols, chunks] :
         {std::tuple<int64_t, int64_t, int64_t>{50, 768, 8},
          {13, 100, 4},
          {6, 37, 32}}) {
      std::string inverse = std::to_string(1.0 / cols);
      Kernel kernel(fill(layerNormGrad, {{"R", std::to_string(rows)},
                                         {"C", std::to_string(cols)},
                                         {"K", std::to_string(chunks)},
                                         {"T", "f32"},
                                         {"I", inverse}}),
                    arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      double scale = std::stof(inverse);
      auto x = randomFloats(rows * cols),
           dy = randomFloats(rows * cols, -1, 1, 2),
           w = randomFloats(cols, 0.5, 1.5, 3),
           dz = randomFloats(rows * cols, -1, 1, 4);
      std::vector<float> dx(x.size()), dg(chunks * cols, NAN),
          db(chunks * cols, NAN), dg2(dg), db2(db);
      std::vector<double> dgExact(chunks * cols), dbExact(chunks * cols);
      kernel.run({x.data(), dy.data(), w.data(), dz.data(), dx.data(),
                  dg.data(), db.data()});
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        for (int64_t r = chunk * rows / chunks; r < (chunk + 1) * rows / chunks;
             ++r) {
          const float *X = &x[r * cols], *D = &dy[r * cols];
          double mean = 0, squares = 0, s1 = 0, s2 = 0;
          for (int64_t c = 0; c < cols; ++c)
            mean += X[c] * scale;
          for (int64_t c = 0; c < cols; ++c)
            squares += (X[c] - mean) * (X[c] - mean);
          double root = 1 / std::sqrt(squares * scale + 1e-5);
          for (int64_t c = 0; c < cols; ++c) {
            s1 += double(D[c]) * w[c] * scale;
            s2 += double(D[c]) * w[c] * (X[c] - mean) * root * scale;
            dgExact[chunk * cols + c] += D[c] * (X[c] - mean) * root;
            dbExact[chunk * cols + c] += D[c];
          }
          for (int64_t c = 0; c < cols; ++c) {
            double hat = (X[c] - mean) * root,
                   exact = (double(D[c]) * w[c] - s1 - hat * s2) * root +
                           dz[r * cols + c];
            expectNear(dx[r * cols + c], exact, 2e-6, 1, r * cols + c);
          }
        }
      for (size_t i = 0; i < dg.size(); ++i) {
        expectNear(dg[i], dgExact[i], 2e-6, 1, i);
        expectNear(db[i], dbExact[i], 2e-6, 1, i);
      }
      kernel.run({x.data(), dy.data(), w.data(), dz.data(), dy.data(),
                  dg2.data(), db2.data()},
                 3);
      EXPECT_EQ(dy, dx);
      EXPECT_EQ(dg, dg2);
      EXPECT_EQ(db, db2);
    }
}

TEST(Code, IsTheSameEachTime) {
  auto text =
      fill(rmsNorm, {{"R", "8"}, {"C", "100"}, {"T", "bf16"}, {"I", "0.01"}});
  Kernel first(text, "x86-64-v3"), second(text, "x86-64-v3");
  ASSERT_FALSE(first.code().empty()) << first.errors();
  EXPECT_EQ(first.code(), second.code());
}

} // namespace
