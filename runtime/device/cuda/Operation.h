// An instruction of a plan on a GPU: everything that can fail or allocate
// happens when it is made; `enqueue` puts it into a stream.
#pragma once

#include "runtime/device/cuda/BlasLt.h"
#include "runtime/device/cuda/Gpu.h"
#include "runtime/device/cuda/LibraryNotes.h"
#include "runtime/machine/Executor.h"

namespace meshwork::runtime::cuda {

class Dnn;
class WgmmaKernels;

class Operation {
public:
  virtual ~Operation() = default;
  /// `sets`: it is the first of the step to add to its destination.
  virtual absl::Status enqueue(Stream stream, bool sets) = 0;
  /// False for what takes bytes from the host.
  virtual bool canBeCaptured() const { return true; }
};

struct OperationContext {
  const Gpu &gpu;
  const RankProgram &program;
  const Mesh &mesh;
  DevicePtr arena;
  std::byte *hostArena; // null: nothing lies there
  DevicePtr workspace;
  uint64_t workspaceBytes;
  const BlasLt *blas; // null where the program has no product
  // Who may run attention, besides the plan's kernels; null: not they.
  Dnn *dnn;
  const WgmmaKernels *wgmma;
  Stream stream; // what happens when it is made goes here
  bool tunes;    // times the library's proposals; else its first is used
  bool choosesAttention; // by its time; else the first of them that can
  // What became of epilogues of products, and of attention by each; null:
  // nobody asks.
  LibraryNotes *epilogues, *dnnNotes, *wgmmaNotes;
  uint32_t multiprocessors = 0; // that a product may count on; 0: all
};

/// Of anything but Collective and Wait. Products and attention
/// overwrite their results and the workspace. Errors do not name the
/// instruction.
absl::StatusOr<std::unique_ptr<Operation>>
makeOperation(const plan::Instruction &instruction,
              const OperationContext &context);

} // namespace meshwork::runtime::cuda
