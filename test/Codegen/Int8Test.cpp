// Whole numbers of 8 bits that kernels store and load.
#include <cmath>
#include <limits>

#include "test/Codegen/StoreKernel.h"

using namespace meshwork::codegen::test;
namespace meshwork::codegen {
namespace {

/// To nearest, of two the even one, within the range; NaN is its lower end.
int8_t rounded(float x) {
  if (std::isnan(x))
    return -127;
  return static_cast<int8_t>(
      std::nearbyint(std::fmin(std::fmax(x, -127.0f), 127.0f)));
}

std::vector<float> interesting() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> list = {0.0f,   -0.0f, infinity, -infinity,     NAN,
                             1e-42f, 3e38f, -3e38f,   2147483648.0f, 128.0f};
  for (int number = -130; number <= 130; ++number) {
    auto middle = static_cast<float>(number) + 0.5f;
    for (float x :
         {static_cast<float>(number), middle, std::nextafter(middle, -infinity),
          std::nextafter(middle, infinity)})
      list.push_back(x);
  }
  return list;
}

void expectRounded(const std::vector<float> &from,
                   const std::vector<uint8_t> &to) {
  for (size_t i = 0; i < from.size(); ++i)
    ASSERT_EQ(static_cast<int8_t>(to[i]), rounded(from[i])) << from[i];
}

TEST(Int8, IsRoundedToNearest) {
  for (const std::string &arch : runnableArchs()) {
    std::vector<float> from = interesting();
    for (size_t count : {from.size(), size_t{1}, size_t{37}}) {
      from.resize(count);
      Kernel kernel(copyOf("f32", "i8", count), arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      std::vector<uint8_t> to(count);
      kernel.run({from.data(), to.data()});
      expectRounded(from, to);
    }
  }
}

TEST(Int8, IsReadAsItsValue) {
  for (const std::string &arch : runnableArchs()) {
    std::vector<uint8_t> from(256);
    for (int bits = 0; bits < 256; ++bits)
      from[bits] = static_cast<uint8_t>(bits);
    Kernel kernel(copyOf("i8", "f32", 256), arch);
    ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
    std::vector<float> to(256);
    kernel.run({from.data(), to.data()});
    for (int bits = 0; bits < 256; ++bits)
      EXPECT_EQ(to[bits], static_cast<float>(static_cast<int8_t>(bits)));
  }
}

TEST(Int8, IsRoundedAlikeOnAGpu) {
  std::vector<float> from = interesting();
  // Vectors of eight; of one.
  for (size_t count : {from.size() / 8 * 8, from.size() / 2 * 2 - 1}) {
    from.resize(count);
    std::vector<uint8_t> to(count);
    ASSERT_EQ(storeOnGpu("i8", from, to), "");
    expectRounded(from, to);
  }
}

} // namespace
} // namespace meshwork::codegen
