// Relocatable objects to a shared object, by lld in this process. lld reads and
// writes files, so both pass through a directory of their own that is removed
// again. `-z defs` is the check that no kernel calls a library.
#include <mutex>

#include "lld/Common/Driver.h"
#include "passes/codegen/machine/CpuObjectSteps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

using namespace mlir;
namespace meshwork::target {
namespace {

/// A new directory, removed with what is in it.
struct TemporaryDirectory {
  llvm::SmallString<128> path;
  std::error_code error =
      llvm::sys::fs::createUniqueDirectory("meshwork-link", path);
  ~TemporaryDirectory() {
    if (!error)
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(const llvm::Twine &name) const {
    return (path + "/" + name).str();
  }
};

bool writeFile(const std::string &path, llvm::ArrayRef<char> bytes,
               std::string &error) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code) {
    stream.write(bytes.data(), bytes.size());
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  if (code)
    error = "cannot write " + path + ": " + code.message();
  return !code;
}

bool runLinker(llvm::ArrayRef<std::string> arguments, std::string &error) {
  static std::mutex one; // lld keeps its state in globals
  std::lock_guard lock(one);
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string output;
  llvm::raw_string_ostream stdoutStream(output), stderrStream(error);
  return lld::lldMain(pointers, stdoutStream, stderrStream,
                      {{lld::Gnu, &lld::elf::link}})
             .retCode == 0;
}
} // namespace

FailureOr<std::vector<char>>
linkSharedObject(llvm::ArrayRef<llvm::SmallVector<char, 0>> objects,
                 std::string &error) {
  TemporaryDirectory directory;
  if (directory.error) {
    error = "cannot create a temporary directory: " + directory.error.message();
    return failure();
  }
  std::string result = directory.file("kernels.so");
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "-o",
                                        result,
                                        "--nostdlib",
                                        "-z",
                                        "defs",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "now",
                                        "--build-id=none",
                                        "--hash-style=gnu",
                                        "--threads=1",
                                        "--strip-debug",
                                        "--soname=kernels.so"};
  for (size_t i = 0; i < objects.size(); ++i) {
    arguments.push_back(directory.file("kernels" + llvm::Twine(i) + ".o"));
    if (!writeFile(arguments.back(), objects[i], error))
      return failure();
  }
  if (!runLinker(arguments, error))
    return failure();
  auto buffer = llvm::MemoryBuffer::getFile(result, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    error = "cannot read " + result + ": " + buffer.getError().message();
    return failure();
  }
  return std::vector<char>((*buffer)->getBufferStart(),
                           (*buffer)->getBufferEnd());
}

} // namespace meshwork::target
