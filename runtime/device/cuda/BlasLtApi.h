// The part of cuBLASLt's interface that is used. Facts of the binary interface:
// cublasLt.h of CUDA 13.0, the same since 11.4; a test compares them where that
// header is installed.
#pragma once

#include "runtime/device/cuda/DriverApi.h"
#include <cstddef>
#include <cstdint>

namespace meshwork::runtime::cuda::blas {

using Status = int;
using Handle = struct HandleObject *;
using MatmulDesc = struct MatmulDescObject *;
using MatrixLayout = struct MatrixLayoutObject *;
using Preference = struct PreferenceObject *;

struct Algorithm {
  uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspaceBytes;
  Status state;
  float wavesCount;
  int reserved[4];
};

namespace status {
inline constexpr Status success = 0, notInitialized = 1, allocationFailed = 3,
                        invalidValue = 7, architectureMismatch = 8,
                        executionFailed = 13, internalError = 14,
                        notSupported = 15;
}
namespace dataType {
inline constexpr int f32 = 0, bf16 = 14, e4m3 = 28, e5m2 = 29;
}
/// f32 sums of f32 products: no TF32.
inline constexpr int computeF32 = 68;
inline constexpr int32_t plain = 0, transposed = 1;
namespace descAttribute {
inline constexpr int transposeA = 3, transposeB = 4, epilogue = 7,
                     biasPointer = 8, auxPointer = 11, auxLd = 12,
                     multiprocessors = 15, // CUBLASLT_..._SM_COUNT_TARGET
    scalePointerA = 17, scalePointerB = 18, auxDataType = 22,
                     fastAccumulation = 25, biasDataType = 26;
}
/// Aux is what GELU is applied to, written, or read by its gradient. The sums
/// of A's rows or of B's columns, along what is summed, go to the bias pointer.
namespace epilogue {
inline constexpr uint32_t none = 1, bias = 4, gelu = 32, geluBias = gelu | bias,
                          geluAux = gelu | 128, geluAuxBias = geluAux | bias,
                          geluGradient = 64 | 128, sumA = 256, sumB = 512;
}
namespace layoutAttribute {
inline constexpr int batchCount = 5, batchStride = 6;
}
namespace preference {
inline constexpr int maxWorkspaceBytes = 1, reductionSchemes = 3,
                     alignmentA = 5, alignmentB = 6, alignmentC = 7,
                     alignmentD = 8;
}
/// Parts of a sum that is split are kept in f32.
inline constexpr uint32_t reduceInComputeType = 2;

/// Calls X(type of result, member, symbol, parameters...) for every function.
#define MESHWORK_BLASLT_FUNCTIONS(X)                                           \
  X(size_t, getVersion, cublasLtGetVersion)                                    \
  X(const char *, getStatusName, cublasLtGetStatusName, Status status)         \
  X(const char *, getStatusString, cublasLtGetStatusString, Status status)     \
  X(Status, create, cublasLtCreate, Handle *handle)                            \
  X(Status, destroy, cublasLtDestroy, Handle handle)                           \
  X(Status, descCreate, cublasLtMatmulDescCreate, MatmulDesc *desc,            \
    int computeType, int scaleType)                                            \
  X(Status, descDestroy, cublasLtMatmulDescDestroy, MatmulDesc desc)           \
  X(Status, descSet, cublasLtMatmulDescSetAttribute, MatmulDesc desc,          \
    int attribute, const void *value, size_t bytes)                            \
  X(Status, layoutCreate, cublasLtMatrixLayoutCreate, MatrixLayout *layout,    \
    int type, uint64_t rows, uint64_t columns, int64_t leadingDim)             \
  X(Status, layoutDestroy, cublasLtMatrixLayoutDestroy, MatrixLayout layout)   \
  X(Status, layoutSet, cublasLtMatrixLayoutSetAttribute, MatrixLayout layout,  \
    int attribute, const void *value, size_t bytes)                            \
  X(Status, preferenceCreate, cublasLtMatmulPreferenceCreate,                  \
    Preference *preference)                                                    \
  X(Status, preferenceDestroy, cublasLtMatmulPreferenceDestroy,                \
    Preference preference)                                                     \
  X(Status, preferenceSet, cublasLtMatmulPreferenceSetAttribute,               \
    Preference preference, int attribute, const void *value, size_t bytes)     \
  X(Status, heuristic, cublasLtMatmulAlgoGetHeuristic, Handle handle,          \
    MatmulDesc desc, MatrixLayout a, MatrixLayout b, MatrixLayout c,           \
    MatrixLayout d, Preference preference, int wanted,                         \
    HeuristicResult *results, int *found)                                      \
  X(Status, matmul, cublasLtMatmul, Handle handle, MatmulDesc desc,            \
    const void *alpha, const void *a, MatrixLayout aLayout, const void *b,     \
    MatrixLayout bLayout, const void *beta, const void *c,                     \
    MatrixLayout cLayout, void *d, MatrixLayout dLayout,                       \
    const Algorithm *algorithm, void *workspace, size_t workspaceBytes,        \
    Stream stream)

} // namespace meshwork::runtime::cuda::blas
