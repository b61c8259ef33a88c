// The part of cuDNN's graph interface that is used. Facts of the binary
// interface: cudnn_graph.h of cuDNN 9.19, the same since 9.0; a test compares
// them where that header is installed.
#pragma once

#include "runtime/device/cuda/DriverApi.h"
#include <cstddef>
#include <cstdint>

namespace meshwork::runtime::cuda::dnn {

using Status = int;
using Handle = struct HandleObject *;
using Descriptor = void *;

namespace status {
inline constexpr Status success = 0;
}
namespace dataType {
inline constexpr int f32 = 0, i32 = 4, bf16 = 9, boolean = 11;
}
namespace pointwiseMode {
inline constexpr int add = 0, mul = 1, div = 6, sub = 9, exp = 13, log = 15,
                     identity = 21, greater = 302, greaterOrEqual = 303,
                     index = 501, select = 601;
}
namespace reductionOperator {
inline constexpr int sum = 0, max = 3;
}
namespace heuristics {
inline constexpr int modeA = 3;
}

/// Kinds of descriptors.
namespace descriptor {
inline constexpr int pointwise = 0, engineConfig = 3, heuristics = 4, plan = 5,
                     pointwiseOperation = 13, graph = 15, variantPack = 16,
                     tensor = 17, matmul = 18, matmulOperation = 19,
                     reduction = 21, reductionOperation = 22,
                     reshapeOperation = 31, deviceProperties = 38;
}
/// Types of what attributes hold.
namespace type {
inline constexpr int handle = 0, dataType = 1, boolean = 2, int64 = 3,
                     pointer = 6, heuristicsMode = 8, pointwiseMode = 14,
                     descriptor = 15, reductionOperator = 18, character = 24;
}
namespace attribute {
inline constexpr int pointwiseMode = 0, pointwisePrecision = 1,
                     pointwiseAxis = 9, heuristicsMode = 200,
                     heuristicsGraph = 201, heuristicsResults = 202,
                     heuristicsDevice = 204, planHandle = 400, planConfig = 401,
                     planWorkspaceSize = 402, planDevice = 407,
                     pointwiseDescriptor = 750, pointwiseX = 751,
                     pointwiseB = 752, pointwiseY = 753, pointwiseT = 758,
                     graphHandle = 800, graphOperations = 801,
                     tensorAlignment = 900, tensorType = 901,
                     tensorDimensions = 902, tensorStrides = 903,
                     tensorUid = 906, tensorIsVirtual = 907,
                     tensorIsByValue = 908, packUids = 1000,
                     packPointers = 1001, packWorkspace = 1003,
                     matmulPrecision = 1500, matmulA = 1520, matmulB = 1521,
                     matmulC = 1522, matmulDescriptor = 1523,
                     reductionOperator = 1600, reductionPrecision = 1601,
                     reductionX = 1610, reductionY = 1611,
                     reductionDescriptor = 1612, reshapeX = 2200,
                     reshapeY = 2201, deviceJson = 2702;
}
/// Older ones want sums in memory cleared by the caller, or have known bugs in
/// attention (cudnn-frontend's sdpa_support_surface.h lists them).
inline constexpr size_t oldestVersion = 91100;

/// Calls X(type of result, member, symbol, parameters...) for every function.
#define MESHWORK_DNN_FUNCTIONS(X)                                              \
  X(size_t, getVersion, cudnnGetVersion)                                       \
  X(const char *, getErrorString, cudnnGetErrorString, Status status)          \
  X(void, getLastErrorString, cudnnGetLastErrorString, char *text,             \
    size_t size)                                                               \
  X(Status, create, cudnnCreate, Handle *handle)                               \
  X(Status, destroy, cudnnDestroy, Handle handle)                              \
  X(Status, setStream, cudnnSetStream, Handle handle, Stream stream)           \
  X(Status, createDescriptor, cudnnBackendCreateDescriptor, int kind,          \
    Descriptor *descriptor)                                                    \
  X(Status, destroyDescriptor, cudnnBackendDestroyDescriptor,                  \
    Descriptor descriptor)                                                     \
  X(Status, setAttribute, cudnnBackendSetAttribute, Descriptor descriptor,     \
    int attribute, int type, int64_t count, const void *elements)              \
  X(Status, getAttribute, cudnnBackendGetAttribute, Descriptor descriptor,     \
    int attribute, int type, int64_t asked, int64_t *count, void *elements)    \
  X(Status, finalize, cudnnBackendFinalize, Descriptor descriptor)             \
  X(Status, execute, cudnnBackendExecute, Handle handle, Descriptor plan,      \
    Descriptor variantPack)

} // namespace meshwork::runtime::cuda::dnn
