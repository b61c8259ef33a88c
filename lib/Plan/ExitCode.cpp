#include "meshwork/Runtime/ExitCode.h"
#include "absl/strings/cord.h"

namespace meshwork::runtime {
namespace {
constexpr char payloadUrl[] = "meshwork/exit-code";
constexpr char elsewhereUrl[] = "meshwork/told-elsewhere";
} // namespace

int exitCodeOf(const absl::Status &status) {
  if (status.ok())
    return static_cast<int>(ExitCode::ok);
  if (auto payload = status.GetPayload(payloadUrl)) {
    if (payload->size() == 1)
      return static_cast<unsigned char>((*payload)[0]);
  }
  switch (status.code()) {
  case absl::StatusCode::kInvalidArgument:
    return static_cast<int>(ExitCode::usage);
  case absl::StatusCode::kDataLoss:
  case absl::StatusCode::kOutOfRange:
    return static_cast<int>(ExitCode::badData);
  case absl::StatusCode::kNotFound:
  case absl::StatusCode::kPermissionDenied:
    return static_cast<int>(ExitCode::noInput);
  case absl::StatusCode::kFailedPrecondition:
    return static_cast<int>(ExitCode::unavailable);
  case absl::StatusCode::kResourceExhausted:
    return static_cast<int>(ExitCode::noResources);
  case absl::StatusCode::kAborted:
  case absl::StatusCode::kUnavailable:
  case absl::StatusCode::kDeadlineExceeded:
    return static_cast<int>(ExitCode::retry);
  default:
    return static_cast<int>(ExitCode::internal);
  }
}

absl::Status withExitCode(absl::Status status, ExitCode code) {
  const char byte = static_cast<char>(code);
  status.SetPayload(payloadUrl, absl::Cord(absl::string_view(&byte, 1)));
  return status;
}

absl::Status toldElsewhere(absl::Status status, int code) {
  status = withExitCode(std::move(status), static_cast<ExitCode>(code));
  status.SetPayload(elsewhereUrl, absl::Cord());
  return status;
}

bool isToldElsewhere(const absl::Status &status) {
  return status.GetPayload(elsewhereUrl).has_value();
}

} // namespace meshwork::runtime
