// The part of the driver's stand-in that stand-ins of other CUDA libraries
// (cuBLASLt, NCCL) use. They link the CMake target meshworkCudaEmulator
// (libcuda.so.1) and put their work on its streams as host functions.
//
//   struct Product { ... };
//   auto *product = new Product{...};
//   return meshworkEmulatorEnqueue(stream, run, product, destroy);
#pragma once

#include "runtime/device/cuda/DriverApi.h"

extern "C" {
/// Puts function(state) at the end of `stream`, or, while the stream is being
/// captured, into the graph: then it runs at each launch of the graph, always
/// with the same state. It runs on the stream's worker thread and may block
/// there, waiting for the worker of another stream, device or process; it must
/// not call the driver. Device addresses are addresses of this process: read
/// and write them after a check (below).
/// Always takes `state`: destroy(state), if given, is called once, after the
/// last run, or at once when this returns an error. Returns a CUDA error:
/// invalidHandle (400), invalidContext (201), or the device's sticky error.
int meshworkEmulatorEnqueue(meshwork::runtime::cuda::Stream stream,
                            void (*function)(void *state), void *state,
                            void (*destroy)(void *state));

/// 1 when [address, address + bytes) lies in one live allocation of any device,
/// else 0. An empty range is live. Callable from every thread.
int meshworkEmulatorCheck(unsigned long long address, size_t bytes);

/// A line "call number" in the file of MESHWORK_EMULATOR_CALLS, if there is
/// one.
void meshworkEmulatorNote(const char *call, unsigned long long number);

/// Called inside a function that was enqueued: what it found wrong. Writes the
/// text to stderr and makes `error` the sticky error of the stream's device:
/// every later call on that device returns it, as after a kernel's fault.
void meshworkEmulatorFail(int error, const char *text);
}
