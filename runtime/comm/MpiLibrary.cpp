#include "runtime/comm/MpiLibrary.h"
#include "absl/strings/str_cat.h"
#include <cstring>
#include <dlfcn.h>

namespace meshwork::runtime {
namespace {
constexpr int maxText = 512; // Open MPI's strings have at most 256

class Loader {
public:
  absl::Status openLibrary() {
    // Plug-ins of Open MPI look for its symbols among the global ones.
    for (const char *name : {"libmpi.so.40", "libmpi.so"})
      if (!handle)
        handle = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (handle)
      return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot open libmpi.so.40 (", ::dlerror(),
        "): several processes need Open MPI; on Debian, install openmpi-bin"));
  }

  void *find(const char *name) {
    void *symbol = ::dlsym(handle, name);
    if (!symbol && missing.empty())
      missing = name;
    return symbol;
  }
  template <typename Function> void find(Function &to, const char *name) {
    to = reinterpret_cast<Function>(find(name));
  }

  absl::Status complete() const {
    if (missing.empty())
      return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("libmpi has no ", missing,
                     ": it is not Open MPI 4 or 5, the only one supported"));
  }

private:
  void *handle = nullptr;
  std::string missing;
};

absl::Status load(MpiLibrary &mpi) {
  Loader loader;
  if (absl::Status status = loader.openLibrary(); !status.ok())
    return status;
  mpi.world = loader.find("ompi_mpi_comm_world");
  mpi.byte = loader.find("ompi_mpi_byte");
  mpi.errorsReturn = loader.find("ompi_mpi_errors_return");
  loader.find(mpi.Init_thread, "MPI_Init_thread");
  loader.find(mpi.Finalize, "MPI_Finalize");
  loader.find(mpi.Abort, "MPI_Abort");
  loader.find(mpi.Comm_rank, "MPI_Comm_rank");
  loader.find(mpi.Comm_size, "MPI_Comm_size");
  loader.find(mpi.Comm_dup, "MPI_Comm_dup");
  loader.find(mpi.Comm_set_errhandler, "MPI_Comm_set_errhandler");
  loader.find(mpi.Isend, "MPI_Isend");
  loader.find(mpi.Irecv, "MPI_Irecv");
  loader.find(mpi.Test, "MPI_Test");
  loader.find(mpi.Cancel, "MPI_Cancel");
  loader.find(mpi.Request_free, "MPI_Request_free");
  loader.find(mpi.Iprobe, "MPI_Iprobe");
  loader.find(mpi.Recv, "MPI_Recv");
  loader.find(mpi.Error_string, "MPI_Error_string");
  loader.find(mpi.Get_library_version, "MPI_Get_library_version");
  return loader.complete();
}
} // namespace

absl::StatusOr<const MpiLibrary *> MpiLibrary::open() {
  static MpiLibrary library;
  static const absl::Status status = load(library);
  if (!status.ok())
    return status;
  return &library;
}

std::string MpiLibrary::errorText(int code) const {
  char text[maxText] = "";
  int length = 0;
  if (Error_string(code, text, &length) != 0)
    return absl::StrCat("MPI error ", code);
  return std::string(text, static_cast<size_t>(length));
}

} // namespace meshwork::runtime
