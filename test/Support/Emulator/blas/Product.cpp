// Products on the CPU: sums in f32, k in order, rounded once.
#include "runtime/machine/Bf16.h"
#include "runtime/machine/Float8.h"
#include "test/Support/Emulator/Emulator.h"
#include "test/Support/Emulator/blas/Objects.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

namespace meshwork::runtime::cuda::blas {
namespace {
/// Rows of d whose sums stay in the first-level cache.
constexpr uint64_t blockRows = 512;

float load(float value) { return value; }
float load(uint16_t bits) { return fromBf16(bits); }
/// A byte that the type of a layout says how to read.
float load(uint8_t bits, int type) {
  return fromFloat8(
      type == dataType::e4m3 ? plan::DType::e4m3 : plan::DType::e5m2, bits);
}
template <typename T> float load(T value, int) { return load(value); }
/// The form with tanh; that of NVIDIA's PyTorch and Transformer Engine, which
/// take it for the library's.
constexpr float geluScale = 0.7978845608f, geluCube = 0.044715f;
float gelu(float x) {
  return 0.5f * x * (1 + std::tanh(geluScale * (x + geluCube * x * x * x)));
}
float geluGradient(float x) {
  float t = std::tanh(geluScale * (x + geluCube * x * x * x));
  return 0.5f * (1 + t) +
         0.5f * x * (1 - t * t) * geluScale * (1 + 3 * geluCube * x * x);
}

void store(float &to, float value) { to = value; }
void store(uint16_t &to, float value) { to = toBf16(value); }

/// op(matrix), in f32, columns dense.
template <typename T>
std::vector<float> pack(const T *matrix, const MatrixLayoutObject &layout,
                        bool isTransposed) {
  uint64_t rows = isTransposed ? layout.columns : layout.rows;
  uint64_t columns = isTransposed ? layout.rows : layout.columns;
  uint64_t ld = static_cast<uint64_t>(layout.ld);
  std::vector<float> packed(rows * columns);
  for (uint64_t j = 0; j < columns; ++j)
    for (uint64_t i = 0; i < rows; ++i)
      packed[j * rows + i] =
          load(matrix[isTransposed ? i * ld + j : j * ld + i], layout.type);
  return packed;
}

/// sums[0, rows) of one column of d: a is `aRows` x k from its row `first` on.
void addColumn(float *sums, uint64_t rows, const float *a, uint64_t aRows,
               const float *bColumn, uint64_t firstK, uint64_t lastK) {
  for (uint64_t k = firstK; k < lastK; ++k) {
    const float *column = a + k * aRows;
    float factor = bColumn[k];
    for (uint64_t i = 0; i < rows; ++i)
      sums[i] += column[i] * factor;
  }
}
} // namespace

bool Product::isReadable() const {
  auto live = [](const void *memory, size_t bytes) {
    return meshworkEmulatorCheck(reinterpret_cast<uintptr_t>(memory), bytes);
  };
  bool readsC = beta != 0;
  return live(a, aLayout.bytes()) && live(b, bLayout.bytes()) &&
         live(d, dLayout.bytes()) && (!readsC || live(c, dLayout.bytes())) &&
         (!workspace || live(workspace, proposal.workspaceBytes)) &&
         (!desc.scaleA || live(desc.scaleA, sizeof(float))) &&
         (!desc.scaleB || live(desc.scaleB, sizeof(float))) &&
         (!biasBytes() || live(desc.bias, biasBytes())) &&
         (!hasAux(desc.epilogue) ||
          live(desc.aux,
               (static_cast<uint64_t>(desc.auxLd) * (dLayout.columns - 1) +
                dLayout.rows) *
                   dLayout.width()));
}

size_t Product::biasBytes() const {
  if (addsBias(desc.epilogue) || desc.epilogue == epilogue::sumA)
    return dLayout.rows * dLayout.width();
  return desc.epilogue == epilogue::sumB ? dLayout.columns * dLayout.width()
                                         : 0;
}

void Product::run() const {
  if (!isReadable()) {
    meshworkEmulatorFail(result::illegalAddress,
                         "cublasLtMatmul: an operand is not in memory that is "
                         "allocated on the device");
    return;
  }
  if (proposal.isSlow)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  bool toF32 = dLayout.type == dataType::f32;
  if (isFloat8(aLayout.type))
    toF32 ? compute<uint8_t, float>() : compute<uint8_t, uint16_t>();
  else if (aLayout.type == dataType::f32)
    compute<float, float>();
  else if (toF32)
    compute<uint16_t, float>();
  else
    compute<uint16_t, uint16_t>();
}

float Product::scale() const {
  return alpha * (desc.scaleA ? *desc.scaleA : 1) *
         (desc.scaleB ? *desc.scaleB : 1);
}

template <typename In, typename Out> void Product::compute() const {
  bool ta = desc.transposeA == transposed, tb = desc.transposeB == transposed;
  uint64_t m = dLayout.rows, depth = ta ? aLayout.rows : aLayout.columns;
  auto at = [](auto *base, const MatrixLayoutObject &layout, int32_t batch) {
    return base + batch * layout.batchStride;
  };
  std::vector<float> sums(blockRows);
  for (int32_t batch = 0; batch < dLayout.batch; ++batch) {
    auto left =
        pack(at(static_cast<const In *>(a), aLayout, batch), aLayout, ta);
    auto right =
        pack(at(static_cast<const In *>(b), bLayout, batch), bLayout, tb);
    Out *to = at(static_cast<Out *>(d), dLayout, batch);
    const Out *from = at(static_cast<const Out *>(c), dLayout, batch);
    if (addsUp(desc.epilogue))
      addUp<Out>(left, right, depth);
    for (uint64_t j = 0; j < dLayout.columns; ++j)
      for (uint64_t i = 0; i < m; i += blockRows) {
        uint64_t rows = std::min(blockRows, m - i);
        uint64_t place = j * static_cast<uint64_t>(dLayout.ld) + i;
        sum(sums, rows, left.data() + i, right.data() + j * depth, depth);
        finish(sums.data(), rows, i, from + place,
               hasAux(desc.epilogue)
                   ? static_cast<Out *>(desc.aux) +
                         j * static_cast<uint64_t>(desc.auxLd) + i
                   : nullptr,
               to + place);
      }
  }
}

/// The epilogues that add up an operand along k.
template <typename T>
void Product::addUp(const std::vector<float> &left,
                    const std::vector<float> &right, uint64_t depth) const {
  bool ofA = desc.epilogue == epilogue::sumA;
  uint64_t count = ofA ? dLayout.rows : dLayout.columns;
  T *to = static_cast<T *>(const_cast<void *>(desc.bias));
  for (uint64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (uint64_t k = 0; k < depth; ++k)
      sum += ofA ? left[k * count + i] : right[i * depth + k];
    store(to[i], sum);
  }
}

/// Of `rows` rows of a column of d. The parts of a split sum lie in the
/// workspace until they are added.
void Product::sum(std::vector<float> &sums, uint64_t rows, const float *left,
                  const float *right, uint64_t depth) const {
  std::fill_n(sums.begin(), rows, 0.0f);
  uint64_t splits = proposal.splits;
  if (splits == 1)
    return addColumn(sums.data(), rows, left, dLayout.rows, right, 0, depth);
  for (uint64_t split = 0; split < splits; ++split) {
    std::fill_n(workspace, rows, 0.0f);
    addColumn(workspace, rows, left, dLayout.rows, right,
              split * depth / splits, (split + 1) * depth / splits);
    for (uint64_t i = 0; i < rows; ++i)
      sums[i] += workspace[i];
  }
}

/// Bias and what was there, and a GELU, rounded once.
template <typename Out>
void Product::finish(const float *sums, uint64_t rows, uint64_t firstRow,
                     const Out *from, Out *aux, Out *to) const {
  const Out *bias = addsBias(desc.epilogue)
                        ? static_cast<const Out *>(desc.bias) + firstRow
                        : nullptr;
  bool isGradient = desc.epilogue == epilogue::geluGradient;
  for (uint64_t i = 0; i < rows; ++i) {
    float value = scale() * sums[i];
    if (beta != 0) // else c may hold anything, NaN too
      value += beta * load(from[i]);
    if (bias)
      value += load(bias[i]);
    if (isGradient)
      value *= geluGradient(load(aux[i]));
    else if (hasAux(desc.epilogue))
      store(aux[i], value);
    if (isGelu(desc.epilogue) && !isGradient)
      value = gelu(value);
    store(to[i], value);
  }
}

} // namespace meshwork::runtime::cuda::blas
