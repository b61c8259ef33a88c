// The part of NCCL's interface that is used. Facts of the binary interface:
// nccl.h of NCCL 2.28, the same since 2.14; a test compares them where that
// header is installed.
#pragma once

#include "runtime/device/cuda/DriverApi.h"
#include <climits>
#include <cstddef>
#include <cstdint>

namespace meshwork::runtime::cuda::nccl {

using Result = int;
using Comm = struct CommObject *;

struct UniqueId {
  char bytes[128];
};

/// Of a field that is left to the library.
inline constexpr int undefined = INT_MIN;
/// The first version whose Config has fields behind `blocking`.
inline constexpr int firstWithCtas = 21700;

/// The fields of NCCL 2.17, which libraries read by `size` and `version`. Those
/// before 2.17 are given the first four (`configFor`).
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = firstWithCtas;
  int blocking = 0;
  int clusterSize = undefined;
  int minCtas = undefined, maxCtas = undefined; // thread blocks of a kernel
  const char *netName = nullptr;
};

/// As a library of `version` reads it.
inline Config configFor(int version) {
  Config config;
  if (version < firstWithCtas) {
    config.size = offsetof(Config, clusterSize) + sizeof(int); // its padding
    config.version = 21400;
  }
  return config;
}

namespace result {
inline constexpr Result success = 0, unhandledCudaError = 1, systemError = 2,
                        internalError = 3, invalidArgument = 4,
                        invalidUsage = 5, remoteError = 6, inProgress = 7;
}
namespace dataType {
inline constexpr int u8 = 1, i32 = 2, f32 = 7, bf16 = 9;
}
namespace reduction {
inline constexpr int sum = 0, max = 2;
}
/// The first with ncclCommInitRankConfig.
inline constexpr int oldestVersion = 21400;

/// The first with ncclMemAlloc and ncclCommRegister.
inline constexpr int firstThatRegisters = 21900;

/// Of what older libraries lack: null there.
#define MESHWORK_NCCL_NEWER_FUNCTIONS(X)                                       \
  X(Result, memAlloc, ncclMemAlloc, void **memory, size_t bytes)               \
  X(Result, memFree, ncclMemFree, void *memory)                                \
  X(Result, registerMemory, ncclCommRegister, const Comm comm, void *memory,   \
    size_t bytes, void **handle)                                               \
  X(Result, deregister, ncclCommDeregister, const Comm comm, void *handle)

/// Calls X(type of result, member, symbol, parameters...) for every function.
#define MESHWORK_NCCL_FUNCTIONS(X)                                             \
  X(Result, getVersion, ncclGetVersion, int *version)                          \
  X(const char *, getErrorString, ncclGetErrorString, Result result)           \
  X(const char *, getLastError, ncclGetLastError, Comm comm)                   \
  X(Result, getUniqueId, ncclGetUniqueId, UniqueId *id)                        \
  X(Result, initRank, ncclCommInitRankConfig, Comm *comm, int ranks,           \
    UniqueId id, int rank, Config *config)                                     \
  X(Result, getAsyncError, ncclCommGetAsyncError, Comm comm, Result *state)    \
  X(Result, finalize, ncclCommFinalize, Comm comm)                             \
  X(Result, destroy, ncclCommDestroy, Comm comm)                               \
  X(Result, abort, ncclCommAbort, Comm comm)                                   \
  X(Result, allReduce, ncclAllReduce, const void *from, void *to,              \
    size_t count, int type, int reduction, Comm comm, Stream stream)           \
  X(Result, reduceScatter, ncclReduceScatter, const void *from, void *to,      \
    size_t countOfBlock, int type, int reduction, Comm comm, Stream stream)    \
  X(Result, allGather, ncclAllGather, const void *from, void *to,              \
    size_t countOfBlock, int type, Comm comm, Stream stream)                   \
  X(Result, send, ncclSend, const void *from, size_t count, int type,          \
    int peer, Comm comm, Stream stream)                                        \
  X(Result, receive, ncclRecv, void *to, size_t count, int type, int peer,     \
    Comm comm, Stream stream)                                                  \
  X(Result, groupStart, ncclGroupStart)                                        \
  X(Result, groupEnd, ncclGroupEnd)

} // namespace meshwork::runtime::cuda::nccl
