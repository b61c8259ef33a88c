// What is left of a product that ran without its epilogue (EpilogueKernel.h).
#include "runtime/device/cuda/kernels/Epilogues.h"
#include "runtime/device/cuda/kernels/Formats.h"

namespace meshwork::runtime::cuda {
namespace {
using I64 = long long;

/// Neighbours of one format, which all tensors of the task have.
template <typename Format> struct Neighbours {
  static constexpr int count = Format::count;
  using Unit = typename Format::Unit;
  static constexpr I64 bytes = sizeof(Unit) / count;

  DEVICE static void read(const EpilogueTensor &from, I64 at, float *values) {
    Unit unit = *reinterpret_cast<const Unit *>(from.address + at * bytes);
#pragma unroll
    for (int i = 0; i < count; ++i)
      values[i] = Format::get(unit, i);
  }
  DEVICE static void write(const EpilogueTensor &to, I64 at,
                           const float *values) {
    *reinterpret_cast<Unit *>(to.address + at * bytes) = Format::join(values);
  }
};

/// One element; each tensor says of what type it is.
struct Single {
  static constexpr int count = 1;
  DEVICE static void read(const EpilogueTensor &from, I64 at, float *values) {
    if (from.isBf16)
      Neighbours<Bf16>::read(from, at, values);
    else
      Neighbours<F32>::read(from, at, values);
  }
  DEVICE static void write(const EpilogueTensor &to, I64 at,
                           const float *values) {
    if (to.isBf16)
      Neighbours<Bf16>::write(to, at, values);
    else
      Neighbours<F32>::write(to, at, values);
  }
};

/// The form with tanh, of which 1 / (1 + exp(-2u)) is (1 + tanh(u)) / 2.
constexpr float geluScale = 0.7978845608f, geluCube = 0.044715f;
/// From here on the function is x or 0 to the last bit. Unbounded, x^2
/// overflows and the derivative is 0 * inf. A NaN of x is in x itself.
DEVICE float squareOf(float x) { return x * x < 100 ? x * x : 100; }
DEVICE float shareOf(float x) {
  constexpr float minusTwoLog2E = -2.885390082f;
  float u = x * geluScale * (1 + geluCube * squareOf(x));
  return 1 / (1 + __nvvm_ex2_approx_f(minusTwoLog2E * u));
}
DEVICE float gelu(float x) { return x * shareOf(x); }
DEVICE float geluGradient(float x) {
  float share = shareOf(x);
  return share + 2 * x * share * (1 - share) * geluScale *
                     (1 + 3 * geluCube * squareOf(x));
}

DEVICE I64 placeIn(const EpilogueTensor &tensor, I64 batch, I64 row,
                   I64 column) {
  return batch * tensor.strides[0] + row * tensor.strides[1] +
         column * tensor.strides[2];
}

template <typename Access>
DEVICE void finish(const FinishTask &task, I64 unit) {
  constexpr int count = Access::count;
  I64 line = unit / task.unitsPerRow, batch = line / task.rows;
  I64 row = line - batch * task.rows;
  I64 column = (unit - line * task.unitsPerRow) * count;
  I64 place = placeIn(task.dst, batch, row, column);
  float values[count], others[count];
  Access::read(task.dst, place, values);
  if (task.bias.address) {
    Access::read(task.bias, column * task.bias.strides[2], others);
#pragma unroll
    for (int i = 0; i < count; ++i)
      values[i] += others[i];
  }
  I64 auxPlace = placeIn(task.aux, batch, row, column);
  if (task.code == FinishCode::geluGradient)
    Access::read(task.aux, auxPlace, others);
  else if (task.aux.address)
    Access::write(task.aux, auxPlace, values);
  if (task.code != FinishCode::bias)
#pragma unroll
    for (int i = 0; i < count; ++i)
      values[i] = task.code == FinishCode::gelu
                      ? gelu(values[i])
                      : values[i] * geluGradient(others[i]);
  Access::write(task.dst, place, values);
}
} // namespace

/// A thread for each unit, in blocks of finishThreads.
KERNEL finishProduct(FinishTask task) {
  I64 unit = I64{blockOfGrid()} * finishThreads + thread();
  if (unit >= task.units)
    return;
  if (task.width == Single::count)
    finish<Single>(task, unit);
  else if (task.dst.isBf16)
    finish<Neighbours<Bf16x8>>(task, unit);
  else
    finish<Neighbours<F32x4>>(task, unit);
}

/// A block of addUpWidth^2 threads for each addUpWidth sums. The threads of a
/// warp read neighbours; the parts of a sum meet in shared memory.
KERNEL __attribute__((launch_bounds(addUpWidth * addUpWidth)))
addUp(AddUpTask task) {
  __attribute__((shared)) static float parts[addUpWidth][addUpWidth + 1];
  int lane = thread() % addUpWidth, warp = thread() / addUpWidth;
  int sum = task.isDenseAlongSum ? warp : lane;
  int part = task.isDenseAlongSum ? lane : warp;
  I64 first = I64{blockOfGrid()} * addUpWidth;
  float total = 0, value = 0;
  if (first + sum < task.count)
#pragma unroll 8
    for (I64 k = part; k < task.depth; k += addUpWidth) {
      Single::read(task.from,
                   (first + sum) * task.from.strides[0] +
                       k * task.from.strides[1],
                   &value);
      total += value;
    }
  parts[sum][part] = total;
  __syncthreads();
  if (warp != 0 || first + lane >= task.count)
    return;
  total = 0;
  for (int i = 0; i < addUpWidth; ++i)
    total += parts[lane][i];
  Single::write(task.to, (first + lane) * task.to.strides[0], &total);
}

} // namespace meshwork::runtime::cuda
