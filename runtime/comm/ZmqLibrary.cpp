#include "runtime/comm/ZmqLibrary.h"
#include "absl/strings/str_cat.h"
#include <dlfcn.h>

namespace meshwork::runtime {
namespace {
absl::Status load(ZmqLibrary &zmq) {
  void *handle = ::dlopen("libzmq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot open libzmq.so.5 (", ::dlerror(),
        "): processes without MPI need ZeroMQ; on Debian, install libzmq5"));
  const char *missing = nullptr;
#define MESHWORK_ZMQ_FIND(name)                                                \
  zmq.name =                                                                   \
      reinterpret_cast<decltype(zmq.name)>(::dlsym(handle, "zmq_" #name));     \
  missing = zmq.name ? missing : #name;
  MESHWORK_ZMQ_FUNCTIONS(MESHWORK_ZMQ_FIND)
#undef MESHWORK_ZMQ_FIND
  zmq.error =
      reinterpret_cast<decltype(zmq.error)>(::dlsym(handle, "zmq_errno"));
  missing = zmq.error ? missing : "errno";
  if (missing)
    return absl::FailedPreconditionError(absl::StrCat(
        "libzmq.so.5 has no zmq_", missing, ": expected ZeroMQ 4.3"));
  return absl::OkStatus();
}
} // namespace

absl::StatusOr<const ZmqLibrary *> ZmqLibrary::open() {
  static ZmqLibrary library;
  static const absl::Status status = load(library);
  if (!status.ok())
    return status;
  return &library;
}

absl::Status ZmqLibrary::failed(const std::string &what) const {
  return absl::UnavailableError(
      absl::StrCat(what, " failed: ", strerror(error())));
}

} // namespace meshwork::runtime
