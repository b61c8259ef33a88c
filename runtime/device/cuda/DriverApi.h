// The part of NVIDIA's driver interface that is used: its types, numbers and
// functions. Nothing includes or links CUDA: the library is opened at run time
// (Driver.h), tests provide one of their own that runs kernels on the CPU
// (test/Support/Emulator). Facts of the binary interface: cuda.h of CUDA 13.0,
// the same since 11.4; a test compares them where that header is installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace meshwork::runtime::cuda {

using Result = int;
using Device = int;
using Uuid = std::array<unsigned char, 16>;
using DevicePtr = uint64_t;
using Context = struct ContextObject *;
using Module = struct ModuleObject *;
using Function = struct FunctionObject *;
using Stream = struct StreamObject *;
using Event = struct EventObject *;
using Graph = struct GraphObject *;
using GraphExec = struct GraphExecObject *;

namespace result {
inline constexpr Result success = 0, invalidValue = 1, outOfMemory = 2,
                        notInitialized = 3, noDevice = 100, invalidImage = 200,
                        invalidContext = 201, noBinaryForGpu = 209,
                        invalidPtx = 218, unsupportedPtxVersion = 222,
                        invalidHandle = 400, notFound = 500, notReady = 600,
                        illegalAddress = 700, launchFailed = 719,
                        notSupported = 801, captureUnsupported = 900,
                        captureInvalidated = 901;
}
/// Of deviceGetAttribute.
namespace attribute {
inline constexpr int maxThreadsPerBlock = 1, clockRateKhz = 13,
                     multiprocessors = 16, computeMajor = 75, computeMinor = 76,
                     maxSharedBytesOptIn = 97;
}
/// Of functionSetAttribute.
namespace functionAttribute {
inline constexpr int localBytes = 3, registers = 4, maxDynamicSharedBytes = 8;
}
/// Of moduleLoadDataEx.
namespace jitOption {
inline constexpr int errorLogBuffer = 5, errorLogBufferBytes = 6;
}
inline constexpr unsigned streamNonBlocking = 1, eventDisableTiming = 2;
inline constexpr int captureThreadLocal = 1;
/// Kernels of a graph keep the priorities of the streams they were captured in;
/// else all have that of the stream which the graph is launched into.
inline constexpr unsigned long long graphUsesNodePriority = 8;
/// The first version whose driver knows it.
inline constexpr int firstWithNodePriority = 11070;

/// Of tensorMapEncodeTiled.
namespace tensorMap {
inline constexpr size_t bytes = 128, alignment = 64;
inline constexpr int float32 = 7, bfloat16 = 9;
inline constexpr int interleaveNone = 0, swizzleNone = 0, swizzle128B = 3,
                     l2Promotion128B = 2, l2Promotion256B = 3, fillZeros = 0;
} // namespace tensorMap

/// Calls X(member, symbol, parameters...) for every function that a driver must
/// have.
#define MESHWORK_CUDA_DRIVER_FUNCTIONS(X)                                      \
  X(init, cuInit, unsigned flags)                                              \
  X(driverGetVersion, cuDriverGetVersion, int *version)                        \
  X(getErrorName, cuGetErrorName, Result error, const char **text)             \
  X(getErrorString, cuGetErrorString, Result error, const char **text)         \
  X(deviceGetCount, cuDeviceGetCount, int *count)                              \
  X(deviceGet, cuDeviceGet, Device *device, int ordinal)                       \
  X(deviceGetName, cuDeviceGetName, char *name, int length, Device device)     \
  X(deviceGetAttribute, cuDeviceGetAttribute, int *value, int attribute,       \
    Device device)                                                             \
  X(deviceGetUuid, cuDeviceGetUuid_v2, Uuid *uuid, Device device)              \
  X(primaryContextRetain, cuDevicePrimaryCtxRetain, Context *context,          \
    Device device)                                                             \
  X(primaryContextRelease, cuDevicePrimaryCtxRelease_v2, Device device)        \
  X(contextSetCurrent, cuCtxSetCurrent, Context context)                       \
  X(streamPriorityRange, cuCtxGetStreamPriorityRange, int *least,              \
    int *greatest)                                                             \
  X(memoryGetInfo, cuMemGetInfo_v2, size_t *free, size_t *total)               \
  X(memoryAllocate, cuMemAlloc_v2, DevicePtr *to, size_t bytes)                \
  X(memoryFree, cuMemFree_v2, DevicePtr memory)                                \
  X(hostAllocate, cuMemHostAlloc, void **to, size_t bytes, unsigned flags)     \
  X(hostFree, cuMemFreeHost, void *memory)                                     \
  X(copyToDevice, cuMemcpyHtoDAsync_v2, DevicePtr to, const void *from,        \
    size_t bytes, Stream stream)                                               \
  X(copyToHost, cuMemcpyDtoHAsync_v2, void *to, DevicePtr from, size_t bytes,  \
    Stream stream)                                                             \
  X(copyOnDevice, cuMemcpyDtoDAsync_v2, DevicePtr to, DevicePtr from,          \
    size_t bytes, Stream stream)                                               \
  X(fillBytes, cuMemsetD8Async, DevicePtr to, unsigned char value,             \
    size_t bytes, Stream stream)                                               \
  X(streamCreate, cuStreamCreateWithPriority, Stream *stream, unsigned flags,  \
    int priority)                                                              \
  X(streamDestroy, cuStreamDestroy_v2, Stream stream)                          \
  X(streamSynchronize, cuStreamSynchronize, Stream stream)                     \
  X(streamQuery, cuStreamQuery, Stream stream)                                 \
  X(streamWaitEvent, cuStreamWaitEvent, Stream stream, Event event,            \
    unsigned flags)                                                            \
  X(streamBeginCapture, cuStreamBeginCapture_v2, Stream stream, int mode)      \
  X(streamEndCapture, cuStreamEndCapture, Stream stream, Graph *graph)         \
  X(eventCreate, cuEventCreate, Event *event, unsigned flags)                  \
  X(eventRecord, cuEventRecord, Event event, Stream stream)                    \
  X(eventQuery, cuEventQuery, Event event)                                     \
  X(eventSynchronize, cuEventSynchronize, Event event)                         \
  X(eventElapsedMs, cuEventElapsedTime, float *ms, Event start, Event end)     \
  X(eventDestroy, cuEventDestroy_v2, Event event)                              \
  X(moduleLoad, cuModuleLoadDataEx, Module *module, const void *image,         \
    unsigned numOptions, int *options, void **optionValues)                    \
  X(moduleUnload, cuModuleUnload, Module module)                               \
  X(moduleGetFunction, cuModuleGetFunction, Function *function, Module module, \
    const char *name)                                                          \
  X(functionGetAttribute, cuFuncGetAttribute, int *value, int attribute,       \
    Function function)                                                         \
  X(functionSetAttribute, cuFuncSetAttribute, Function function,               \
    int attribute, int value)                                                  \
  X(launchKernel, cuLaunchKernel, Function function, unsigned gridX,           \
    unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,          \
    unsigned blockZ, unsigned sharedBytes, Stream stream, void **parameters,   \
    void **extra)                                                              \
  X(graphInstantiate, cuGraphInstantiateWithFlags, GraphExec *exec,            \
    Graph graph, unsigned long long flags)                                     \
  X(graphLaunch, cuGraphLaunch, GraphExec exec, Stream stream)                 \
  X(graphExecDestroy, cuGraphExecDestroy, GraphExec exec)                      \
  X(graphDestroy, cuGraphDestroy, Graph graph)

/// The same for functions that older drivers lack: CUDA 12.0.
#define MESHWORK_CUDA_DRIVER_OPTIONAL_FUNCTIONS(X)                             \
  X(tensorMapEncodeTiled, cuTensorMapEncodeTiled, void *to, int dataType,      \
    unsigned rank, uint64_t globalAddress, const uint64_t *dims,               \
    const uint64_t *strideBytes, const uint32_t *box,                          \
    const uint32_t *elementStrides, int interleave, int swizzle,               \
    int l2Promotion, int oobFill)

} // namespace meshwork::runtime::cuda
