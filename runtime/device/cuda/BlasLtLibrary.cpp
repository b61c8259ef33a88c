#include "runtime/device/cuda/BlasLtLibrary.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/DynamicLibrary.h"

namespace meshwork::runtime::cuda {
namespace {
/// Those of CUDA 13 fail on older drivers, where they may be installed too:
/// Python packages bring them.
std::vector<const char *> namesFor(const Driver &driver) {
  constexpr int cuda13 = 13000;
  std::vector<const char *> names{"libcublasLt.so.12", "libcublasLt.so"};
  if (driver.version >= cuda13)
    names.insert(names.begin(), "libcublasLt.so.13");
  return names;
}

absl::Status load(BlasLtLibrary &blas) {
  absl::StatusOr<const Driver *> driver = Driver::open();
  MESHWORK_RETURN_IF_ERROR(driver.status());
  DynamicLibrary library(namesFor(**driver));
  if (!library.isOpen())
    return absl::FailedPreconditionError(absl::StrCat(
        library.whyNot(), ": a plan for GPUs needs NVIDIA's cuBLASLt; install "
                          "CUDA's libcublas, or put the folder that has it on "
                          "LD_LIBRARY_PATH"));
#define MESHWORK_BLASLT_FIND(type, member, symbol, ...)                        \
  library.find(blas.member, #symbol);
  MESHWORK_BLASLT_FUNCTIONS(MESHWORK_BLASLT_FIND)
#undef MESHWORK_BLASLT_FIND
  if (library.firstMissing().empty())
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("libcublasLt has no ", library.firstMissing(),
                   ": expected the one of CUDA 12 or 13"));
}
} // namespace

absl::StatusOr<const BlasLtLibrary *> BlasLtLibrary::open() {
  static BlasLtLibrary library;
  static const absl::Status status = load(library);
  if (!status.ok())
    return status;
  return &library;
}

absl::Status BlasLtLibrary::check(blas::Status status,
                                  absl::string_view what) const {
  if (status == blas::status::success)
    return absl::OkStatus();
  bool lacks = status == blas::status::notSupported ||
               status == blas::status::architectureMismatch;
  return absl::Status(
      lacks ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInternal,
      absl::StrCat(what, " failed: ", getStatusName(status), " (", status,
                   "), ", getStatusString(status)));
}

} // namespace meshwork::runtime::cuda
