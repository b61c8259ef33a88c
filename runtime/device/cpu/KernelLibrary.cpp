// The shared object is passed to the loader through a sealed memory file: no
// path on disk that another process could change between check and load.
#include "runtime/device/cpu/KernelLibrary.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace meshwork::runtime {
namespace {

absl::Status systemError(const char *call) {
  return absl::InternalError(absl::StrCat("loading the plan's kernels: ", call,
                                          ": ", std::strerror(errno)));
}

/// The loader trusts what it maps, so the header is looked at first.
absl::Status checkHeader(const flatbuffers::Vector<uint8_t> &code) {
  Elf64_Ehdr header;
  if (code.size() < sizeof(header))
    return absl::DataLossError(
        absl::StrCat("the plan's code has ", code.size(),
                     " bytes, too few for a shared object"));
  std::memcpy(&header, code.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN ||
      header.e_machine != EM_X86_64)
    return absl::DataLossError(
        "the plan's code is not a 64-bit x86 ELF shared object");
  return absl::OkStatus();
}

absl::Status writeAll(int file, const uint8_t *data, size_t size) {
  while (size > 0) {
    ssize_t written = write(file, data, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return systemError("write");
    data += written;
    size -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::StatusOr<void *> open(const flatbuffers::Vector<uint8_t> &code) {
  if (absl::Status status = checkHeader(code); !status.ok())
    return status;
  int file = memfd_create("meshwork-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0)
    return systemError("memfd_create");
  absl::Cleanup closeFile = [file] { close(file); };
  if (absl::Status status = writeAll(file, code.data(), code.size());
      !status.ok())
    return status;
  int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (fcntl(file, F_ADD_SEALS, seals) != 0)
    return systemError("fcntl(F_ADD_SEALS)");
  std::string path = absl::StrCat("/proc/self/fd/", file);
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return absl::DataLossError(
        absl::StrCat("the loader refused the plan's code: ", dlerror()));
  return handle;
}

} // namespace

absl::StatusOr<std::unique_ptr<KernelLibrary>>
KernelLibrary::load(const plan::Plan &plan) {
  std::unique_ptr<KernelLibrary> library(new KernelLibrary);
  uint32_t count = plan.kernels() ? plan.kernels()->size() : 0;
  if (count == 0)
    return library;
  if (!plan.code())
    return absl::DataLossError(
        absl::StrCat("the plan names ", count, " kernels but holds no code"));
  absl::StatusOr<void *> handle = open(*plan.code());
  if (!handle.ok())
    return handle.status();
  library->handle = *handle;
  for (const plan::Kernel *kernel : *plan.kernels()) {
    const flatbuffers::String *name = kernel->symbol();
    if (plan.device() == plan::Device::cuda && !(name = kernel->cpu_symbol())) {
      library->functions.push_back(
          nullptr); // of an instruction that is no launch
      continue;
    }
    const char *symbol = name ? name->c_str() : "";
    void *address = dlsym(library->handle, symbol);
    if (!address)
      return absl::DataLossError(
          absl::StrCat("the plan's code has no symbol \"", symbol,
                       "\" for kernel #", library->functions.size()));
    library->functions.push_back(reinterpret_cast<KernelFn>(address));
  }
  return library;
}

KernelLibrary::~KernelLibrary() {
  if (handle)
    dlclose(handle);
}

} // namespace meshwork::runtime
