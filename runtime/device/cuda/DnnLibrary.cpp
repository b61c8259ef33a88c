#include "runtime/device/cuda/DnnLibrary.h"
#include "absl/strings/str_cat.h"
#include "runtime/device/cuda/DynamicLibrary.h"

namespace meshwork::runtime::cuda {
namespace {
absl::Status load(DnnLibrary &dnn) {
  DynamicLibrary library({"libcudnn.so.9"});
  if (!library.isOpen())
    return absl::FailedPreconditionError(absl::StrCat(
        library.whyNot(), ": --cudnn-attention needs NVIDIA's cuDNN; install "
                          "it, or put the folder that has it on "
                          "LD_LIBRARY_PATH"));
#define MESHWORK_DNN_FIND(type, member, symbol, ...)                           \
  library.find(dnn.member, #symbol);
  MESHWORK_DNN_FUNCTIONS(MESHWORK_DNN_FIND)
#undef MESHWORK_DNN_FIND
  size_t version = library.firstMissing().empty() ? dnn.getVersion() : 0;
  if (version >= dnn::oldestVersion)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("libcudnn.so.9 is version ", version,
                   library.firstMissing().empty()
                       ? ""
                       : absl::StrCat(" and has no ", library.firstMissing()),
                   ", expected ", dnn::oldestVersion, " (9.11) or newer"));
}
} // namespace

absl::StatusOr<const DnnLibrary *> DnnLibrary::open() {
  static DnnLibrary library;
  static const absl::Status status = load(library);
  if (!status.ok())
    return status;
  return &library;
}

absl::Status DnnLibrary::check(dnn::Status status,
                               absl::string_view what) const {
  if (status == dnn::status::success)
    return absl::OkStatus();
  // 3000 to 3999 are the reasons why something is not supported.
  bool lacks = status / 1000 == 3;
  char last[512] = "";
  getLastErrorString(last, sizeof(last));
  return absl::Status(lacks ? absl::StatusCode::kUnimplemented
                            : absl::StatusCode::kInternal,
                      absl::StrCat(what, " failed: ", getErrorString(status),
                                   " (", status, ")", *last ? ", " : "", last));
}

} // namespace meshwork::runtime::cuda
