// Products of matrices for tests of BlasLt: operands on a device, of all types
// and layouts, and what the product is by loops in double precision.
//
// Tolerance: inputs lie in [-1, 1], so a sum of K products in f32 is off by at
// most K * K * 2^-24 in any order, and about K * 2^-24 in practice; 4 K * 2^-24
// is allowed. A bf16 result adds half its spacing, 2^-9 of a value that is at
// most K + 2, with bias and what was there.
#pragma once

#include "runtime/device/cuda/BlasLt.h"
#include "runtime/machine/Bf16.h"
#include "test/Runtime/Float8.h"
#include "test/Runtime/cuda/TestDevice.h"
#include <cmath>
#include <cstdlib>
#include <random>

namespace meshwork::runtime::cuda::test {
using plan::DType;

struct Case {
  int64_t b, m, n, k;
  DType in = DType::f32, out = DType::f32;
  bool lhsTransposed = false, rhsTransposed = false, dstTransposed = false;
  bool bias = false;
  int64_t padding = 0; // elements between stored rows
  uint64_t workspaceBytes = 65536;
  DType rhs = DType::i32; // as in
  bool lacks = false;     // the library, all algorithms with epilogues
  DType typeOfRhs() const { return rhs == DType::i32 ? in : rhs; }
};
/// Of operands of 8 bits.
inline constexpr float scales[2] = {0.5f, 0.75f};

inline std::vector<float> randomValues(size_t count, DType type,
                                       unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float &value : values) {
    value = distribution(generator);
    if (type == DType::bf16)
      value = fromBf16(toBf16(value));
    if (plan::isFloat8(type))
      value = fromFloat8(type, runtime::test::toFloat8(type, double(value)));
  }
  return values;
}

/// A [b, r, c] view whose rows, or columns, are dense, with its values.
struct Matrix {
  DeviceView view;
  size_t stored; // elements

  Matrix(TestDevice &on, DType type, int64_t b, int64_t r, int64_t c,
         bool transposed, int64_t padding) {
    int64_t ld = (transposed ? r : c) + padding;
    int64_t rows = transposed ? c : r;
    stored = static_cast<size_t>(b * rows * ld);
    view = {on.allocate(stored * 4),
            type,
            {b, r, c},
            {rows * ld, transposed ? 1 : ld, transposed ? ld : 1}};
  }

  size_t at(size_t element) const {
    int64_t i = static_cast<int64_t>(element);
    int64_t c = view.shape[2], r = view.shape[1];
    return static_cast<size_t>(i / (r * c) * view.strides[0] +
                               i / c % r * view.strides[1] +
                               i % c * view.strides[2]);
  }
  void write(TestDevice &on, const std::vector<float> &values) const {
    // NaN in the gaps: nothing may read them.
    std::vector<float> wide(stored, NAN);
    for (size_t i = 0; i < values.size(); ++i)
      wide[at(i)] = values[i];
    if (view.dtype == DType::f32)
      return on.write(view.address, wide);
    if (plan::isFloat8(view.dtype)) {
      std::vector<uint8_t> bytes;
      for (float value : wide)
        bytes.push_back(runtime::test::toFloat8(view.dtype, double(value)));
      return on.write(view.address, bytes);
    }
    std::vector<uint16_t> narrow;
    for (float value : wide)
      narrow.push_back(toBf16(value));
    on.write(view.address, narrow);
  }
  std::vector<float> read(TestDevice &on, size_t count) const {
    std::vector<float> wide;
    if (view.dtype == DType::f32)
      wide = on.read<float>(view.address, stored);
    else
      for (uint16_t bits : on.read<uint16_t>(view.address, stored))
        wide.push_back(fromBf16(bits));
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) {
      values[i] = wide[at(i)];
      wide[at(i)] = NAN;
    }
    for (float gap : wide)
      EXPECT_TRUE(std::isnan(gap)) << "wrote between rows";
    return values;
  }
};

struct Problem {
  Case c;
  Matrix lhs, rhs, dst;
  std::vector<float> lhsValues, rhsValues, biasValues, before;
  MatmulRequest request;

  Problem(TestDevice &on, const Case &c)
      : c(c), lhs(on, c.in, c.b, c.m, c.k, c.lhsTransposed, c.padding),
        rhs(on, c.typeOfRhs(), c.b, c.k, c.n, c.rhsTransposed, c.padding),
        dst(on, c.out, c.b, c.m, c.n, c.dstTransposed, c.padding),
        lhsValues(randomValues(count(c.b, c.m, c.k), c.in, 1)),
        rhsValues(randomValues(count(c.b, c.k, c.n), c.typeOfRhs(), 2)),
        biasValues(randomValues(count(1, 1, c.n), c.out, 3)),
        before(randomValues(count(c.b, c.m, c.n), c.out, 4)) {
    lhs.write(on, lhsValues);
    rhs.write(on, rhsValues);
    request = {lhs.view, rhs.view, dst.view, {}, 0, c.workspaceBytes, "h.0"};
    request.workspace = on.allocate(c.workspaceBytes + 1);
    if (plan::isFloat8(c.in)) {
      request.lhsScale = on.allocate(2 * sizeof(float));
      request.rhsScale = request.lhsScale + sizeof(float);
      on.write(request.lhsScale, std::vector<float>{scales[0], scales[1]});
    }
    if (!c.bias)
      return;
    // Less aligned than dst, as one in the middle of a buffer.
    constexpr int64_t before = 16;
    Matrix bias(on, c.out, 1, 1, c.n + before, false, 0);
    std::vector<float> values(before, NAN);
    values.insert(values.end(), biasValues.begin(), biasValues.end());
    bias.write(on, values);
    DevicePtr width = c.out == DType::f32 ? 4 : 2;
    request.bias =
        DeviceView{bias.view.address + before * width, c.out, {c.n}, {1}};
  }
  static size_t count(int64_t b, int64_t r, int64_t c) {
    return static_cast<size_t>(b * r * c);
  }

  double expected(size_t element, bool adds) const {
    size_t m = size_t(c.m), n = size_t(c.n), k = size_t(c.k);
    size_t batch = element / (m * n), row = element / n % m,
           column = element % n;
    double sum = 0;
    for (size_t i = 0; i < k; ++i)
      sum += double(lhsValues[(batch * m + row) * k + i]) *
             rhsValues[(batch * k + i) * n + column];
    if (plan::isFloat8(c.in))
      sum *= scales[0] * scales[1];
    return sum + (c.bias ? biasValues[column] : 0) +
           (adds ? before[element] : 0);
  }
};

/// In all types and transpositions: `first` as it is, `second` with gaps, and
/// that with a bias.
inline std::vector<Case> layoutsOf(const Case &first, const Case &second) {
  std::vector<Case> cases;
  for (auto [in, out] :
       {std::pair(DType::f32, DType::f32), std::pair(DType::bf16, DType::bf16),
        std::pair(DType::bf16, DType::f32)})
    for (int bits = 0; bits < 8; ++bits) {
      auto add = [&, in = in, out = out](const Case &sizes, int64_t padding,
                                         bool bias) {
        Case c{sizes.b, sizes.m,        sizes.n,        sizes.k,       in,
               out,     bool(bits & 1), bool(bits & 2), bool(bits & 4)};
        c.padding = padding;
        c.bias = bias;
        cases.push_back(c);
      };
      add(first, 0, false);
      add(second, 5, false);
      add(second, 5, true);
    }
  return cases;
}

/// While it lives the library has no algorithm with an epilogue, if so.
struct NoEpilogues {
  explicit NoEpilogues(bool lacks = true) {
    if (lacks)
      ::setenv("MESHWORK_EMULATOR_BLAS_WITHOUT", "4,32,36,160,164,192,256,512",
               1);
  }
  ~NoEpilogues() { ::unsetenv("MESHWORK_EMULATOR_BLAS_WITHOUT"); }
};

inline std::string refusal(const BlasLt &blas, const MatmulRequest &request,
                           absl::StatusCode code) {
  auto product = blas.prepare(request);
  EXPECT_FALSE(product.ok());
  EXPECT_EQ(product.status().code(), code);
  return std::string(product.status().message());
}

inline std::string whyBeside(const BlasLt &blas, const MatmulRequest &request) {
  auto product = blas.prepare(request);
  expectOk(product.status());
  return (*product)->whyBeside();
}

#define EXPECT_HAS(text, part)                                                 \
  EXPECT_NE((text).find(part), std::string::npos) << (text)

} // namespace meshwork::runtime::cuda::test
