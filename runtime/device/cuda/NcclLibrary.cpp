#include "runtime/device/cuda/NcclLibrary.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/DynamicLibrary.h"

namespace meshwork::runtime::cuda {
namespace {
absl::Status load(NcclLibrary &nccl) {
  MESHWORK_RETURN_IF_ERROR(Driver::open().status());
  DynamicLibrary library({"libnccl.so.2"});
  if (!library.isOpen())
    return absl::FailedPreconditionError(absl::StrCat(
        library.whyNot(),
        ": ranks on several GPUs need NVIDIA's NCCL; install libnccl2, or put "
        "the folder that has it on LD_LIBRARY_PATH"));
#define MESHWORK_NCCL_FIND(type, member, symbol, ...)                          \
  library.find(nccl.member, #symbol);
  MESHWORK_NCCL_FUNCTIONS(MESHWORK_NCCL_FIND)
  int &version = nccl.version;
  bool isComplete = library.firstMissing().empty() &&
                    nccl.getVersion(&version) == nccl::result::success &&
                    version >= nccl::oldestVersion;
  if (isComplete) {
    MESHWORK_NCCL_NEWER_FUNCTIONS(MESHWORK_NCCL_FIND)
    return absl::OkStatus();
  }
#undef MESHWORK_NCCL_FIND
  return absl::FailedPreconditionError(
      absl::StrCat("libnccl.so.2 is version ", version,
                   library.firstMissing().empty()
                       ? ""
                       : absl::StrCat(" and has no ", library.firstMissing()),
                   ", expected ", nccl::oldestVersion, " (2.14) or newer"));
}
} // namespace

absl::StatusOr<const NcclLibrary *> NcclLibrary::open() {
  static NcclLibrary library;
  static const absl::Status status = load(library);
  if (!status.ok())
    return status;
  return &library;
}

absl::Status NcclLibrary::expectVersion(int first,
                                        absl::string_view what) const {
  if (version >= first)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what, " needs NCCL ", first / 10000, ".", first / 100 % 100,
      " or newer, libnccl.so.2 is version ", version / 10000, ".",
      version / 100 % 100, ": install a newer one, or leave the option out"));
}

absl::Status NcclLibrary::check(nccl::Result result, absl::string_view what,
                                nccl::Comm comm) const {
  if (result == nccl::result::success)
    return absl::OkStatus();
  const char *last = getLastError(comm);
  bool byPeer = result == nccl::result::remoteError;
  return absl::Status(
      byPeer ? absl::StatusCode::kAborted : absl::StatusCode::kInternal,
      absl::StrCat(what, " failed: ", getErrorString(result), " (NCCL ", result,
                   ")", last && *last ? ", " : "", last ? last : ""));
}

} // namespace meshwork::runtime::cuda
