// NVIDIA's NCCL, opened at run time.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/cuda/NcclApi.h"

namespace meshwork::runtime::cuda {

struct NcclLibrary {
  // Parameters are named in the namespace of the API.
  using Result = nccl::Result;
  using Comm = nccl::Comm;
  using UniqueId = nccl::UniqueId;
  using Config = nccl::Config;
#define MESHWORK_NCCL_MEMBER(type, member, symbol, ...)                        \
  type (*member)(__VA_ARGS__);
  MESHWORK_NCCL_FUNCTIONS(MESHWORK_NCCL_MEMBER)
  MESHWORK_NCCL_NEWER_FUNCTIONS(MESHWORK_NCCL_MEMBER)
#undef MESHWORK_NCCL_MEMBER

  /// Opened once for the life of the process, by any thread; the driver is
  /// opened first. failedPrecondition (exit code 69) tells what is missing.
  static absl::StatusOr<const NcclLibrary *> open();

  int version = 0; // 22809 is 2.28.9

  /// ok, or failedPrecondition: the library is older than `first`, which
  /// `what` needs.
  absl::Status expectVersion(int first, absl::string_view what) const;

  /// ok, or an error that tells what failed, the library's text for `result`
  /// and its last message about `comm` (null: about the process). Its code is
  /// aborted when a peer is at fault, else internal.
  absl::Status check(nccl::Result result, absl::string_view what,
                     nccl::Comm comm = nullptr) const;
};

} // namespace meshwork::runtime::cuda
