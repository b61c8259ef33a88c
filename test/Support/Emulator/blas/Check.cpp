// What cuBLASLt refuses. Source of the types: the table of cublasLtMatmul in
// NVIDIA's documentation of cuBLAS 13, rows of 32-bit sums, for f32, bf16 and 8
// bits. Source of what 8 bits demand beside: "8-bit Floating Point Data Types
// (FP8) Usage" there.
#include "test/Support/Emulator/blas/Objects.h"
#include <cstdlib>
#include <sstream>
#include <string>

extern "C" meshwork::runtime::cuda::Result
cuDeviceGetAttribute(int *value, int attribute,
                     meshwork::runtime::cuda::Device device);

namespace meshwork::runtime::cuda::blas {
namespace {
/// From 8.9 on.
bool hasFloat8() {
  constexpr int majorAttribute = 75, minorAttribute = 76;
  int major = 0, minor = 0;
  return cuDeviceGetAttribute(&major, majorAttribute, 0) == 0 &&
         cuDeviceGetAttribute(&minor, minorAttribute, 0) == 0 &&
         major * 10 + minor >= 89;
}

bool isType(int type) {
  return type == dataType::f32 || type == dataType::bf16;
}

/// 16 bytes of everything at a time, and A^T B: what sm_90 has. Other devices
/// may take more.
Status checkFloat8(const MatmulDescObject &desc, const MatrixLayoutObject &a,
                   const MatrixLayoutObject &b, const MatrixLayoutObject &d) {
  constexpr int64_t unit = 16;
  bool types = isFloat8(a.type) && isFloat8(b.type) &&
               (a.type == dataType::e4m3 || b.type == dataType::e4m3);
  if (!types || !hasFloat8() || desc.transposeA != transposed ||
      desc.transposeB != plain)
    return status::notSupported;
  for (const MatrixLayoutObject *layout : {&a, &b, &d})
    if (layout->rows % unit || layout->columns % unit ||
        layout->ld * static_cast<int64_t>(layout->width()) % unit)
      return status::notSupported;
  return status::success;
}

Status checkTypes(const MatmulDescObject &desc, int a, int b, int c, int d) {
  if (desc.computeType != computeF32 || desc.scaleType != dataType::f32)
    return status::notSupported;
  bool narrow = isFloat8(a) || isFloat8(b);
  if (c != d || (!narrow && (!isType(a) || a != b)))
    return status::notSupported;
  if (d != dataType::f32 && d != (narrow ? dataType::bf16 : a))
    return status::notSupported;
  int bias = desc.biasType == -1 ? d : desc.biasType;
  bool usesBias = addsBias(desc.epilogue) || addsUp(desc.epilogue);
  if (usesBias && bias != (narrow ? dataType::bf16 : d))
    return status::notSupported;
  if (hasAux(desc.epilogue) && desc.auxType != -1 && desc.auxType != d)
    return status::notSupported;
  if (!narrow && (desc.scaleA || desc.scaleB || desc.fastAccumulation))
    return status::notSupported;
  return status::success;
}

bool fits(const MatrixLayoutObject &layout, uint64_t rows, uint64_t columns,
          int32_t batch) {
  return layout.rows == rows && layout.columns == columns && rows > 0 &&
         columns > 0 && layout.ld >= static_cast<int64_t>(rows) &&
         layout.batch == batch && batch > 0;
}

/// Which there are, and for what. The library has GELU for 8 bits too, with
/// rules of its own, which nobody here asks for. What the header says of aux:
/// its leading dim is a multiple of 8 and no less than the rows of d.
Status checkEpilogue(const MatmulDescObject &desc, bool narrow,
                     const MatrixLayoutObject &d) {
  constexpr int64_t unit = 8;
  constexpr uintptr_t aligned = 16;
  if (desc.epilogue == epilogue::none)
    return status::success;
  if (desc.epilogue != epilogue::bias &&
      (narrow || (!isGelu(desc.epilogue) && !addsUp(desc.epilogue))))
    return status::notSupported;
  if ((addsBias(desc.epilogue) || addsUp(desc.epilogue)) && !desc.bias)
    return status::invalidValue;
  if (addsUp(desc.epilogue) && d.batch != 1)
    return status::notSupported;
  if (!hasAux(desc.epilogue))
    return status::success;
  if (!desc.aux || desc.auxLd % unit || desc.auxLd < int64_t(d.rows))
    return status::invalidValue;
  if (reinterpret_cast<uintptr_t>(desc.aux) % aligned || d.batch != 1)
    return status::notSupported;
  return status::success;
}

/// MESHWORK_EMULATOR_BLAS_WITHOUT: epilogues, numbers with commas between, that
/// no algorithm is found for, as the heuristics of a library may.
bool isMissing(uint32_t epilogue) {
  const char *list = std::getenv("MESHWORK_EMULATOR_BLAS_WITHOUT");
  std::stringstream numbers(list ? list : "");
  for (std::string number; std::getline(numbers, number, ',');)
    if (number == std::to_string(epilogue))
      return true;
  return false;
}

bool isTransform(int32_t value) {
  return value == plain || value == transposed;
}
} // namespace

size_t MatrixLayoutObject::bytes() const {
  int64_t last = (batch - 1) * batchStride +
                 (static_cast<int64_t>(columns) - 1) * ld +
                 static_cast<int64_t>(rows);
  return static_cast<size_t>(last) * width();
}

Status checkProblem(const MatmulDescObject *desc, const MatrixLayoutObject *a,
                    const MatrixLayoutObject *b, const MatrixLayoutObject *c,
                    const MatrixLayoutObject *d) {
  if (!desc || !a || !b || !c || !d)
    return status::invalidValue;
  if (Status types = checkTypes(*desc, a->type, b->type, c->type, d->type))
    return types;
  bool narrow = isFloat8(a->type) || isFloat8(b->type);
  if (Status limits = narrow ? checkFloat8(*desc, *a, *b, *d) : status::success)
    return limits;
  if (!isTransform(desc->transposeA) || !isTransform(desc->transposeB))
    return status::invalidValue;
  if (Status refused = checkEpilogue(*desc, narrow, *d))
    return refused;
  if (isMissing(desc->epilogue))
    return status::notSupported;
  bool ta = desc->transposeA, tb = desc->transposeB;
  uint64_t k = ta ? a->rows : a->columns;
  bool fit = fits(*a, ta ? k : d->rows, ta ? d->rows : k, d->batch) &&
             fits(*b, tb ? d->columns : k, tb ? k : d->columns, d->batch) &&
             fits(*c, d->rows, d->columns, d->batch) &&
             fits(*d, d->rows, d->columns, d->batch);
  return fit ? status::success : status::invalidValue;
}

uint64_t hashOf(const MatmulDescObject &desc, const MatrixLayoutObject &a,
                const MatrixLayoutObject &b, const MatrixLayoutObject &d) {
  uint64_t hash = 14695981039346656037u; // FNV-1a
  auto add = [&](auto value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211u;
  };
  for (const MatrixLayoutObject *layout : {&a, &b, &d}) {
    add(layout->type), add(layout->rows), add(layout->columns);
    add(layout->ld), add(layout->batch), add(layout->batchStride);
  }
  add(desc.transposeA), add(desc.transposeB), add(desc.epilogue);
  add(desc.computeType), add(desc.biasType);
  add(desc.auxType), add(desc.auxLd), add(desc.fastAccumulation);
  add(desc.multiprocessors);
  add(desc.scaleA != nullptr), add(desc.scaleB != nullptr);
  return hash;
}

} // namespace meshwork::runtime::cuda::blas
