#include "runtime/device/cuda/Driver.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/DynamicLibrary.h"

namespace meshwork::runtime::cuda {
namespace {
constexpr char libraryName[] = "libcuda.so.1";
constexpr char needs[] = "; device \"cuda\" needs an NVIDIA GPU and its driver";

absl::Status lacking(absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(what, needs));
}

absl::Status findFunctions(Driver &driver) {
  DynamicLibrary library({libraryName});
  if (!library.isOpen())
    return lacking(library.whyNot());
#define MESHWORK_CUDA_FIND(member, symbol, ...)                                \
  library.find(driver.member, #symbol);
  MESHWORK_CUDA_DRIVER_FUNCTIONS(MESHWORK_CUDA_FIND)
  // cuGraphInstantiateWithFlags is the youngest function: CUDA 11.4.
  if (!library.firstMissing().empty())
    return absl::FailedPreconditionError(
        absl::StrCat(libraryName, " has no ", library.firstMissing(),
                     ": the NVIDIA driver is too old, expected 470 or newer"));
  MESHWORK_CUDA_DRIVER_OPTIONAL_FUNCTIONS(MESHWORK_CUDA_FIND)
#undef MESHWORK_CUDA_FIND
  return absl::OkStatus();
}

absl::Status load(Driver &driver) {
  MESHWORK_RETURN_IF_ERROR(findFunctions(driver));
  if (absl::Status status = driver.check(driver.init(0), "cuInit");
      !status.ok())
    return lacking(status.message());
  if (absl::Status status = driver.check(driver.deviceGetCount(&driver.devices),
                                         "cuDeviceGetCount");
      !status.ok())
    return lacking(status.message());
  if (driver.devices < 1)
    return lacking("the NVIDIA driver sees no device");
  return driver.check(driver.driverGetVersion(&driver.version),
                      "cuDriverGetVersion");
}

absl::StatusCode codeOf(Result result) {
  switch (result) {
  case result::outOfMemory:
    return absl::StatusCode::kResourceExhausted;
  case result::noDevice:
  case result::invalidImage:
  case result::noBinaryForGpu:
  case result::invalidPtx:
  case result::unsupportedPtxVersion:
  case result::notSupported:
    return absl::StatusCode::kFailedPrecondition;
  default:
    return absl::StatusCode::kInternal;
  }
}
} // namespace

absl::StatusOr<const Driver *> Driver::open() {
  static Driver driver;
  static const absl::Status status = load(driver);
  if (!status.ok())
    return status;
  return &driver;
}

absl::Status Driver::check(Result result, absl::string_view what) const {
  if (result == result::success)
    return absl::OkStatus();
  const char *name = nullptr, *text = nullptr;
  if (getErrorName(result, &name) != result::success || !name)
    name = "an error unknown to the driver";
  if (getErrorString(result, &text) != result::success || !text)
    text = "no description";
  return absl::Status(codeOf(result), absl::StrCat(what, " failed: ", name,
                                                   " (", result, "), ", text));
}

} // namespace meshwork::runtime::cuda
