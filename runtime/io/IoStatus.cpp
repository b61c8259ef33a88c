#include "runtime/io/IoStatus.h"
#include "meshwork/Runtime/ExitCode.h"

namespace meshwork::runtime {

absl::Status fromIo(const absl::Status &status) {
  if (status.code() == absl::StatusCode::kFailedPrecondition)
    return withExitCode(status, ExitCode::cannotCreate);
  if (status.code() == absl::StatusCode::kUnimplemented)
    return withExitCode(status, ExitCode::badData);
  if (status.code() == absl::StatusCode::kUnavailable)
    return withExitCode(status, ExitCode::inputOutput);
  return status;
}

} // namespace meshwork::runtime
