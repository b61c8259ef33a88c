// What the operations of this folder have in common.
#pragma once

#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Instructions.h"
#include "runtime/device/cpu/Prepare.h"
#include "runtime/device/cpu/Tensor.h"

namespace meshwork::runtime::cpu {

/// An instruction in two steps, so that the compiler can ask for the workspace
/// without an arena. A factory below checks it against the program and settles
/// its blocking. Then bind() gives it memory and threads.
class Operation : public Executable {
public:
  /// Scratch of each thread, in bytes.
  virtual uint64_t workspaceBytes() const { return 0; }

  /// Called once, before the first run.
  virtual absl::Status bind(const PrepareContext &context) {
    team = &context.team;
    arena = context.arena;
    workspace = context.workspace;
    workspaceStride = context.workspaceBytesPerThread;
    return absl::OkStatus();
  }

protected:
  std::byte *workspaceOf(int thread) const {
    return workspace + workspaceStride * static_cast<uint64_t>(thread);
  }

  ThreadTeam *team = nullptr;
  std::byte *arena = nullptr;

private:
  std::byte *workspace = nullptr;
  uint64_t workspaceStride = 0;
};

using OperationOr = absl::StatusOr<std::unique_ptr<Operation>>;

inline uint64_t alignUp(uint64_t bytes) { return (bytes + 63) / 64 * 64; }
inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Hands out parts of a thread's workspace, or counts them from null.
class Carver {
public:
  explicit Carver(std::byte *base) : base(base) {}
  template <typename T> T *take(int64_t count) {
    std::byte *part = base ? base + bytes : nullptr;
    bytes += alignUp(static_cast<uint64_t>(count) * sizeof(T));
    return reinterpret_cast<T *>(part);
  }
  uint64_t used() const { return bytes; }

private:
  std::byte *base;
  uint64_t bytes = 0;
};

// The factory of each kind of instruction.
#define MESHWORK_MAKE(Kind)                                                    \
  OperationOr make(const plan::Kind &op, const ProgramOnRank &program);
MESHWORK_PLAN_INSTRUCTIONS(MESHWORK_MAKE)
#undef MESHWORK_MAKE

} // namespace meshwork::runtime::cpu
