// Which launches run as one.
#pragma once

#include "passes/schedule/Order.h"

namespace meshwork::schedule {

struct GroupLimits {
  int64_t operands;    // views of a group
  int64_t maxNewBytes; // of all results of a group in buffers that come and go
};

/// Launches and fills that can run as one, in front of `at`. Several groups may
/// stand at one place, which one of them has as a member.
struct LaunchGroup {
  ::mlir::Operation *at;
  ::llvm::SmallVector<::mlir::Operation *>
      members; // equal kernels side by side
};

/// Whether a fill can be a kernel: of floats, one after the other, fewer than
/// 2^31.
bool hasKernelForm(FillOp op);

/// Groups of `run`, launches and fills with nothing between them, but for those
/// that stay alone where they are. If all stand at their places, everything
/// comes after what it needs. `streamsOf` counts the random streams that a
/// member's kernel takes.
::std::vector<LaunchGroup>
groupLaunches(::llvm::ArrayRef<::mlir::Operation *> run, const Uses &uses,
              const GroupLimits &limits,
              ::llvm::function_ref<int64_t(::mlir::Operation *)> streamsOf);

} // namespace meshwork::schedule
