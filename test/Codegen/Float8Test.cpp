// Numbers of 8 bits that kernels store and load, bit for bit, against a list of
// all numbers that the formats have.
#include <algorithm>
#include <limits>

#include "test/Codegen/StoreKernel.h"

using namespace mlir;
using namespace meshwork::codegen::test;
namespace meshwork::codegen {
namespace {

struct Format {
  const char *type;
  int exponentBits, mantissaBits;
  double largest;
};
constexpr Format formats[] = {{"f8E4M3FN", 4, 3, 448}, {"f8E5M2", 5, 2, 57344}};

/// What the bits of a number that is not negative stand for, by the definition.
double valueOf(const Format &format, int bits) {
  int bias = (1 << (format.exponentBits - 1)) - 1;
  int exponent = bits >> format.mantissaBits;
  double mantissa = (bits & ((1 << format.mantissaBits) - 1)) *
                    std::ldexp(1.0, -format.mantissaBits);
  return exponent == 0 ? std::ldexp(mantissa, 1 - bias)
                       : std::ldexp(1 + mantissa, exponent - bias);
}

/// The number nearest to `x` by distances to all, of two the even one.
uint8_t nearest(const Format &format, float x) {
  if (std::isnan(x))
    return 0x7f;
  double magnitude = std::min<double>(std::abs(x), format.largest);
  int best = 0;
  for (int bits = 0; valueOf(format, bits) <= format.largest && bits < 0x7f;
       ++bits) {
    double distance = std::abs(valueOf(format, bits) - magnitude),
           least = std::abs(valueOf(format, best) - magnitude);
    if (distance < least || (distance == least && bits % 2 == 0))
      best = bits;
  }
  return static_cast<uint8_t>(best | (std::signbit(x) ? 0x80 : 0));
}

/// All numbers, what lies between each two, and both sides of that; the ends.
std::vector<float> interesting(const Format &format) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> list = {0.0f,    -0.0f,  infinity, -infinity, NAN,
                             1e-30f,  1e-42f, 3e38f,    -3e38f,    100000.0f,
                             -460.0f, 464.0f, 465.0f,   61440.0f,  70000.0f};
  for (int bits = 0; valueOf(format, bits) < format.largest; ++bits) {
    double low = valueOf(format, bits), high = valueOf(format, bits + 1);
    auto middle = static_cast<float>((low + high) / 2);
    for (float x :
         {static_cast<float>(low), middle, std::nextafter(middle, 0.0f),
          std::nextafter(middle, infinity)})
      list.insert(list.end(), {x, -x});
  }
  for (float x : randomFloats(1000, -3, 3))
    list.push_back(std::ldexp(x, static_cast<int>(list.size() % 40) - 20));
  return list;
}

bool isNan(uint8_t bits) { return (bits & 0x7f) == 0x7f; }

void expectRounded(const Format &format, const std::vector<float> &from,
                   const std::vector<uint8_t> &to) {
  for (size_t i = 0; i < from.size(); ++i)
    if (std::isnan(from[i]))
      EXPECT_TRUE(isNan(to[i])) << format.type;
    else
      ASSERT_EQ(to[i], nearest(format, from[i]))
          << format.type << " of " << from[i];
}

TEST(Float8, IsRoundedToNearest) {
  for (const std::string &arch : runnableArchs())
    for (const Format &format : formats) {
      std::vector<float> from = interesting(format);
      for (size_t count : {from.size(), size_t{1}, size_t{37}}) {
        from.resize(count);
        Kernel kernel(copyOf("f32", format.type, count), arch);
        ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
        std::vector<uint8_t> to(count);
        kernel.run({from.data(), to.data()});
        expectRounded(format, from, to);
      }
    }
}

TEST(Float8, IsReadAsWhatItStandsFor) {
  for (const std::string &arch : runnableArchs())
    for (const Format &format : formats) {
      std::vector<uint8_t> from(256);
      for (int bits = 0; bits < 256; ++bits)
        from[bits] = static_cast<uint8_t>(bits);
      Kernel kernel(copyOf(format.type, "f32", 256), arch);
      ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
      std::vector<float> to(256);
      kernel.run({from.data(), to.data()});
      for (int bits = 0; bits < 256; ++bits) {
        double value = valueOf(format, bits & 0x7f);
        double expected = bits & 0x80 ? -value : value;
        if (value <= format.largest)
          EXPECT_EQ(to[bits], expected) << format.type << " " << bits;
        else if (format.mantissaBits == 2 && (bits & 0x7f) == 0x7c)
          EXPECT_EQ(std::abs(to[bits]), HUGE_VALF);
        else
          EXPECT_TRUE(std::isnan(to[bits])) << format.type << " " << bits;
      }
    }
}

/// By the machine's instruction, as the emulator has it.
TEST(Float8, IsRoundedAlikeOnAGpu) {
  for (const Format &format : formats) {
    std::vector<float> from = interesting(format);
    // Vectors of eight; of one.
    for (size_t count : {from.size() / 8 * 8, from.size() / 2 * 2 - 1}) {
      from.resize(count);
      std::vector<uint8_t> to(count);
      ASSERT_EQ(storeOnGpu(format.type, from, to), "");
      expectRounded(format, from, to);
    }
  }
}

} // namespace
} // namespace meshwork::codegen
