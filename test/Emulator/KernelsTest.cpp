// What clang makes of the CUDA C++ in kernels/, against the same in plain C++.
#include "test/Emulator/Snippet.h"

namespace meshwork::ptx {
namespace {

Kernels load(const std::string &name, const std::string &arch) {
  return Kernels::fromFile(
      absl::StrCat(KERNELS_FOLDER, "/", name, ".", arch, ".ptx"));
}
class CudaKernels : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Architectures, CudaKernels,
                         ::testing::Values("sm_80", "sm_90a", "sm_100"),
                         [](const auto &info) { return info.param; });

TEST_P(CudaKernels, Softmax) {
  Kernels kernels = load("softmax", GetParam());
  const int rows = 3, columns = 300;
  Buffer<float> in(rows * columns), out(rows * columns);
  std::mt19937 random(1);
  for (float &x : in)
    x = float(random() % 1000) / 100;
  absl::Status status = kernels.launch(
      "softmax", {.grid = {rows}, .block = {128}}, out, in, columns);
  ASSERT_TRUE(status.ok()) << status;
  for (int row = 0; row < rows; ++row) {
    double sum = 0, largest = 10;
    for (int i = 0; i < columns; ++i)
      sum += std::exp(in[row * columns + i] - largest);
    for (int i = 0; i < columns; ++i)
      EXPECT_NEAR(out[row * columns + i],
                  std::exp(in[row * columns + i] - largest) / sum, 1e-7);
  }
}

struct Item {
  int weights[5];
  double scale;
};
long polynomial(const Item &item, bool turned, long x) {
  long result = 0;
  for (int i = 4; i >= 0; --i)
    result = result * x + item.weights[turned ? 4 - i : i];
  return result;
}
int branch(int kind, int x) {
  const int results[] = {x * 3,
                         x / 7,
                         x % 11,
                         x ^ 0x55,
                         __builtin_popcount(unsigned(x)),
                         __builtin_clz(unsigned(x | 1)),
                         -x,
                         -x};
  return results[kind];
}
TEST_P(CudaKernels, CallsAndLocalMemory) {
  Kernels kernels = load("calls", GetParam());
  const int n = 500;
  Item item{{3, -1, 4, 1, -5}, 1.75};
  Buffer<long> out(n);
  Buffer<int> count(std::vector<int>{0});
  absl::Status status = kernels.launch("calls", {.grid = {8}, .block = {64}},
                                       out, count, item, n);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(count[0], n);
  for (int i = 0; i < n; ++i) {
    std::vector<int> sorted;
    for (int k = 0; k < 8; ++k)
      sorted.push_back((i * 37 + k * 101) % 64);
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(out[i], polynomial(item, i % 2, i % 50) +
                          branch(i % 8, i) * 1000000l + sorted[i % 8] +
                          long(item.scale * i))
        << i;
  }
}

TEST_P(CudaKernels, Bf16Rows) {
  Kernels kernels = load("reduced", GetParam());
  const int rows = 2, columns = 512;
  Buffer<uint16_t> in(rows * columns), out(rows * columns);
  Buffer<float> scale(columns);
  std::mt19937 random(1);
  for (uint16_t &x : in)
    x = toBf16(double(random() % 512) - 256);
  for (float &x : scale)
    x = float(random() % 1000) / 999;
  Shape shape{.grid = {rows}, .block = {32}, .sharedBytes = columns * 4};
  absl::Status status =
      kernels.launch("scaleRows", shape, out, in, scale, columns);
  ASSERT_TRUE(status.ok()) << status;
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < columns; ++i) {
      float x = wide(in[row * columns + columns - 1 - i]);
      ASSERT_EQ(out[row * columns + i], toBf16(x * scale[columns - 1 - i]));
    }
  shape.sharedBytes -= 4;
  EXPECT_TRUE(
      failsWith(kernels.launch("scaleRows", shape, out, in, scale, columns),
                "at shared address"));
}

TEST_P(CudaKernels, ARowLongerThanItsBuffer) {
  Kernels kernels = load("softmax", GetParam());
  Buffer<float> in(std::vector<float>(128, 1.f)), out(128);
  absl::Status status =
      kernels.launch("softmax", {.grid = {1}, .block = {64}}, out, in, 129);
  EXPECT_TRUE(failsWith(status, "kernel softmax: illegal read of 4 bytes"));
  EXPECT_TRUE(failsWith(status, "one of 512 bytes begins 512 bytes before it"));
}

} // namespace
} // namespace meshwork::ptx
