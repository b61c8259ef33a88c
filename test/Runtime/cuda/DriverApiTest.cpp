// DriverApi.h against cuda.h, at compile time.
#include "runtime/device/cuda/DriverApi.h"
#include "test/Runtime/cuda/SameInterface.h"
#include <cuda.h>
#include <gtest/gtest.h>

namespace meshwork::runtime::cuda {
namespace {
#define MESHWORK_SAME(member, symbol, ...)                                     \
  static_assert(                                                               \
      SameInterface<decltype(&::symbol), Result (*)(__VA_ARGS__)>::value,      \
      #symbol);
MESHWORK_CUDA_DRIVER_FUNCTIONS(MESHWORK_SAME)
#if CUDA_VERSION >= 12000
MESHWORK_CUDA_DRIVER_OPTIONAL_FUNCTIONS(MESHWORK_SAME)
static_assert(tensorMap::bytes == sizeof(CUtensorMap));
// The function asks for 64 bytes; CUDA 13's type has 128.
static_assert(alignof(CUtensorMap) % tensorMap::alignment == 0);
static_assert(tensorMap::float32 == CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
static_assert(tensorMap::bfloat16 == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(tensorMap::interleaveNone == CU_TENSOR_MAP_INTERLEAVE_NONE);
static_assert(tensorMap::swizzleNone == CU_TENSOR_MAP_SWIZZLE_NONE);
static_assert(tensorMap::swizzle128B == CU_TENSOR_MAP_SWIZZLE_128B);
static_assert(tensorMap::l2Promotion128B == CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
static_assert(tensorMap::l2Promotion256B == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
static_assert(tensorMap::fillZeros == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
#endif

// The comparison can fail.
static_assert(!SameInterface<decltype(&::cuInit), Result (*)(size_t)>::value);
static_assert(!SameInterface<decltype(&::cuInit), Result (*)()>::value);

static_assert(graphUsesNodePriority ==
              CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
static_assert(result::success == CUDA_SUCCESS);
static_assert(result::invalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(result::outOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(result::notInitialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(result::noDevice == CUDA_ERROR_NO_DEVICE);
static_assert(result::invalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(result::invalidContext == CUDA_ERROR_INVALID_CONTEXT);
static_assert(result::noBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(result::invalidPtx == CUDA_ERROR_INVALID_PTX);
static_assert(result::unsupportedPtxVersion ==
              CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(result::invalidHandle == CUDA_ERROR_INVALID_HANDLE);
static_assert(result::notFound == CUDA_ERROR_NOT_FOUND);
static_assert(result::notReady == CUDA_ERROR_NOT_READY);
static_assert(result::illegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(result::launchFailed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(result::notSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(result::captureUnsupported ==
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(result::captureInvalidated ==
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

static_assert(attribute::maxThreadsPerBlock ==
              CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(attribute::clockRateKhz == CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
static_assert(attribute::multiprocessors ==
              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(attribute::computeMajor ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(attribute::computeMinor ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(attribute::maxSharedBytesOptIn ==
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(functionAttribute::localBytes ==
              CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
static_assert(functionAttribute::registers == CU_FUNC_ATTRIBUTE_NUM_REGS);
static_assert(functionAttribute::maxDynamicSharedBytes ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(jitOption::errorLogBuffer == CU_JIT_ERROR_LOG_BUFFER);
static_assert(jitOption::errorLogBufferBytes ==
              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(streamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(eventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(captureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

TEST(DriverApi, IsThatOfTheHeader) { SUCCEED() << "compared when compiled"; }
} // namespace
} // namespace meshwork::runtime::cuda
