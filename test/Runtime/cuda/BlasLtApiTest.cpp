// BlasLtApi.h against cublasLt.h, at compile time.
#include "runtime/device/cuda/BlasLtApi.h"
#include "test/Runtime/cuda/SameInterface.h"
#include <cublasLt.h>
#include <gtest/gtest.h>

namespace meshwork::runtime::cuda::blas {
namespace {
#define MESHWORK_SAME(type, member, symbol, ...)                               \
  static_assert(                                                               \
      SameInterface<decltype(&::symbol), type (*)(__VA_ARGS__)>::value,        \
      #symbol);
MESHWORK_BLASLT_FUNCTIONS(MESHWORK_SAME)

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(HeuristicResult) ==
              sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(HeuristicResult, workspaceBytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(HeuristicResult, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));

static_assert(status::success == CUBLAS_STATUS_SUCCESS);
static_assert(status::notInitialized == CUBLAS_STATUS_NOT_INITIALIZED);
static_assert(status::allocationFailed == CUBLAS_STATUS_ALLOC_FAILED);
static_assert(status::invalidValue == CUBLAS_STATUS_INVALID_VALUE);
static_assert(status::architectureMismatch == CUBLAS_STATUS_ARCH_MISMATCH);
static_assert(status::executionFailed == CUBLAS_STATUS_EXECUTION_FAILED);
static_assert(status::internalError == CUBLAS_STATUS_INTERNAL_ERROR);
static_assert(status::notSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(dataType::f32 == CUDA_R_32F);
static_assert(dataType::bf16 == CUDA_R_16BF);
static_assert(dataType::e4m3 == CUDA_R_8F_E4M3);
static_assert(dataType::e5m2 == CUDA_R_8F_E5M2);
static_assert(descAttribute::scalePointerA ==
              CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
static_assert(descAttribute::scalePointerB ==
              CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
static_assert(descAttribute::fastAccumulation ==
              CUBLASLT_MATMUL_DESC_FAST_ACCUM);
static_assert(computeF32 == CUBLAS_COMPUTE_32F);
static_assert(plain == CUBLAS_OP_N);
static_assert(transposed == CUBLAS_OP_T);
static_assert(descAttribute::transposeA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(descAttribute::transposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(descAttribute::epilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(descAttribute::biasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(descAttribute::biasDataType ==
              CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
static_assert(descAttribute::auxPointer ==
              CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
static_assert(descAttribute::auxLd == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
static_assert(descAttribute::auxDataType ==
              CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE);
static_assert(epilogue::none == CUBLASLT_EPILOGUE_DEFAULT);
static_assert(epilogue::bias == CUBLASLT_EPILOGUE_BIAS);
static_assert(epilogue::gelu == CUBLASLT_EPILOGUE_GELU);
static_assert(epilogue::geluBias == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(epilogue::geluAux == CUBLASLT_EPILOGUE_GELU_AUX);
static_assert(epilogue::geluAuxBias == CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
static_assert(epilogue::geluGradient == CUBLASLT_EPILOGUE_DGELU);
static_assert(epilogue::sumA == CUBLASLT_EPILOGUE_BGRADA);
static_assert(epilogue::sumB == CUBLASLT_EPILOGUE_BGRADB);
static_assert(layoutAttribute::batchCount ==
              CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(layoutAttribute::batchStride ==
              CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(preference::maxWorkspaceBytes ==
              CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(preference::reductionSchemes ==
              CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(preference::alignmentA ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(preference::alignmentB ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(preference::alignmentC ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(preference::alignmentD ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(reduceInComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);

TEST(BlasLtApi, IsThatOfTheHeader) { SUCCEED() << "compared when compiled"; }
} // namespace
} // namespace meshwork::runtime::cuda::blas
