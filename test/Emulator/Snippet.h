// Runs a few PTX instructions on many values and compares with plain C++.
//
//   Snippet<uint32_t, uint32_t, uint32_t> add("add.u32 %d, %a, %b;");
//   add.check([](uint32_t a, uint32_t b) { return a + b; });
//
// The registers are %a, %b, %c (sources), %d (result), by size .b16, .b32 or
// .b64; scratch: %p, %q, %r1 to %r9, %rd1 to %rd9, %h1 to %h9.
#pragma once

#include "test/Support/Emulator/KernelTest.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>
#include <tuple>

namespace meshwork::ptx {

inline std::string widthOf(size_t bytes) {
  return absl::StrCat(".b", bytes * 8);
}

/// `body` inside a kernel of one warp or more with %d, %a, %b, %c.
template <class D, class... S> std::string kernelText(const std::string &body) {
  const size_t sizes[] = {sizeof(D), sizeof(S)...};
  const char *names[] = {"d", "a", "b", "c"};
  constexpr size_t count = sizeof...(S) + 1;
  std::string parameters, registers, begin;
  for (size_t i = 0; i < count; ++i) {
    std::string name = names[i], width = widthOf(sizes[i]);
    absl::StrAppend(&parameters, i ? ", " : "", ".param .u64 p", name);
    absl::StrAppend(&registers, ".reg ", width, " %", name, ";\n.reg .b64 %at",
                    name, ";\n");
    absl::StrAppend(&begin, "ld.param.b64 %at", name, ", [p", name,
                    "];\nmad.wide.u32 %at", name, ", %thread, ", sizes[i],
                    ", %at", name, ";\n");
    if (i)
      absl::StrAppend(&begin, "ld.global", width, " %", name, ", [%at", name,
                      "];\n");
  }
  return absl::StrCat(
      ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k(",
      parameters, ")\n{\n", registers,
      ".reg .pred %p, %q; .reg .b32 %thread; .reg .b16 %h<10>;\n"
      ".reg .b32 %r<10>; .reg .b64 %rd<10>;\nmov.u32 %thread, %tid.x;\n",
      begin, body, "\nst.global", widthOf(sizeof(D)),
      " [%atd], %d;\nret;\n}\n");
}

template <class T> std::vector<T> edgeValues() {
  if constexpr (std::is_floating_point_v<T>) {
    using L = std::numeric_limits<T>;
    return {T(0),
            T(-0.0),
            T(1),
            T(-1),
            T(0.5),
            T(1.5),
            T(2.5),
            T(-2.5),
            L::max(),
            -L::max(),
            L::min(),
            L::denorm_min(),
            -L::denorm_min(),
            L::infinity(),
            -L::infinity(),
            L::quiet_NaN(),
            L::epsilon(),
            T(3e9),
            T(-3e9),
            T(255.5)};
  } else {
    using L = std::numeric_limits<T>;
    return {T(0),    T(1),   T(2),  T(7),     T(31),    T(32),
            T(33),   T(-1),  T(-2), L::max(), L::min(), T(L::max() / 2),
            T(0x80), T(0xff)};
  }
}
template <class T> T randomValue(std::mt19937_64 &random) {
  if constexpr (std::is_floating_point_v<T>) {
    // Any exponent that products of three survive, any fraction.
    std::uniform_real_distribution<T> fraction(-2, 2);
    return std::ldexp(fraction(random), int(random() % 40) - 20);
  } else {
    return T(random() >> random() % 64);
  }
}
/// Edge values against each other, then random ones.
template <class T>
std::vector<T> testValues(size_t count, size_t stride, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> edges = edgeValues<T>(), values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = i < count / 2 ? edges[i / stride % edges.size()]
                              : randomValue<T>(random);
  return values;
}

/// The same bits; any NaN is as good as another.
template <class T>::testing::AssertionResult same(T found, T expected) {
  if constexpr (std::is_floating_point_v<T>)
    if (found != found && expected != expected)
      return ::testing::AssertionSuccess();
  if (std::memcmp(&found, &expected, sizeof(T)) == 0)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "found " << +found << ", expected " << +expected;
}

inline float wide(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}
/// To bf16 by the distance to both neighbours, in a wider format.
inline uint16_t toBf16(double x) {
  if (x != x)
    return 0x7fff;
  uint32_t bits = std::bit_cast<uint32_t>(float(std::fabs(x)));
  uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  uint16_t low = uint16_t(bits >> 16);
  while (low > 0 && double(wide(low)) > std::fabs(x))
    --low;
  if (std::isinf(x))
    return sign | 0x7f80;
  double below = wide(low), above = low == 0x7f7f ? 0x1p128 : wide(low + 1);
  double down = std::fabs(x) - below, up = above - std::fabs(x);
  bool takesUpper = up < down || (up == down && low & 1);
  return uint16_t(sign | (low + takesUpper));
}

template <class D, class... S> class Snippet {
public:
  static constexpr size_t count = 1024;
  explicit Snippet(const std::string &body)
      : body(body), kernels(Kernels::fromText(kernelText<D, S...>(body))) {}

  /// The results for the values of `sources`, one thread each.
  std::vector<D> run(const std::vector<S> &...sources) {
    EXPECT_TRUE(kernels.status().ok()) << kernels.status();
    Buffer<D> to(count);
    std::tuple<Buffer<S>...> from{sources...};
    absl::Status status = std::apply(
        [&](auto &...buffers) {
          return kernels.launch("k", {.grid = {}, .block = {count}}, to,
                                buffers...);
        },
        from);
    EXPECT_TRUE(status.ok()) << status << "\n" << body;
    return {to.begin(), to.end()};
  }
  /// Every result is expected(a, b, c), within `tolerance` of its size.
  template <class F> void check(F expected, double tolerance = 0) {
    size_t stride = 1;
    unsigned seed = 1;
    auto next = [&]<class T>(T *) {
      auto values = testValues<T>(count, stride, seed++);
      stride *= edgeValues<T>().size() + 1;
      return values;
    };
    std::tuple<std::vector<S>...> from{next((S *)nullptr)...};
    std::vector<D> found =
        std::apply([&](auto &...values) { return run(values...); }, from);
    for (size_t i = 0; i < count; ++i) {
      D wanted = std::apply(
          [&](auto &...values) { return D(expected(values[i]...)); }, from);
      double size = std::fabs(double(wanted));
      if (tolerance > 0 && std::isfinite(size) &&
          std::fabs(double(found[i]) - double(wanted)) <= tolerance * size)
        continue;
      ASSERT_TRUE(same(found[i], wanted)) << body << " of " << written(i, from);
    }
  }

private:
  static std::string written(size_t i, std::tuple<std::vector<S>...> &from) {
    std::ostringstream text;
    text.precision(17);
    std::apply([&](auto &...values) { ((text << +values[i] << " "), ...); },
               from);
    return text.str();
  }
  std::string body;
  Kernels kernels;
};

/// A fault whose text contains `what`.
inline ::testing::AssertionResult failsWith(const absl::Status &status,
                                            const std::string &what) {
  if (status.ok())
    return ::testing::AssertionFailure() << "no error, expected: " << what;
  if (std::string(status.message()).find(what) != std::string::npos)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "found: " << status << "\nexpected: " << what;
}

} // namespace meshwork::ptx
