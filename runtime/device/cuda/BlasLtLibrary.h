// NVIDIA's cuBLASLt, opened at run time.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/cuda/BlasLtApi.h"

namespace meshwork::runtime::cuda {

struct BlasLtLibrary {
#define MESHWORK_BLASLT_MEMBER(type, member, symbol, ...)                      \
  type (*member)(__VA_ARGS__);
  // Parameters are named in the namespace of the API.
  using Status = blas::Status;
  using Handle = blas::Handle;
  using MatmulDesc = blas::MatmulDesc;
  using MatrixLayout = blas::MatrixLayout;
  using Preference = blas::Preference;
  using HeuristicResult = blas::HeuristicResult;
  using Algorithm = blas::Algorithm;
  MESHWORK_BLASLT_FUNCTIONS(MESHWORK_BLASLT_MEMBER)
#undef MESHWORK_BLASLT_MEMBER

  /// Opened once for the life of the process, by any thread. The driver is
  /// opened first: the library needs it. failedPrecondition (exit code 69)
  /// tells what is missing.
  static absl::StatusOr<const BlasLtLibrary *> open();

  /// ok, or an error that tells what failed and the library's name, number and
  /// description of `status`: unimplemented for what it does not support,
  /// else internal.
  absl::Status check(blas::Status status, absl::string_view what) const;
};

} // namespace meshwork::runtime::cuda
