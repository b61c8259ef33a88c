// NVIDIA's cuDNN, opened at run time.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/cuda/DnnApi.h"

namespace meshwork::runtime::cuda {

struct DnnLibrary {
  // Parameters are named in the namespace of the API.
  using Status = dnn::Status;
  using Handle = dnn::Handle;
  using Descriptor = dnn::Descriptor;
#define MESHWORK_DNN_MEMBER(type, member, symbol, ...)                         \
  type (*member)(__VA_ARGS__);
  MESHWORK_DNN_FUNCTIONS(MESHWORK_DNN_MEMBER)
#undef MESHWORK_DNN_MEMBER

  /// Opened once for the life of the process, by any thread.
  /// failedPrecondition (exit code 69) tells what is missing.
  static absl::StatusOr<const DnnLibrary *> open();

  /// Returns ok, or an error that tells what failed, the library's text for
  /// `status` and what it said last. The error is unimplemented where the
  /// library has nothing for what was asked, else internal.
  absl::Status check(dnn::Status status, absl::string_view what) const;
};

} // namespace meshwork::runtime::cuda
