// Relocatable objects to a shared object, by lld in this process. `-z defs` is
// the check that no kernel calls a library.
#include <mutex>

#include "lld/Common/Driver.h"
#include "passes/codegen/machine/CpuObjectSteps.h"
#include "passes/codegen/machine/ToolFiles.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

using namespace mlir;
namespace meshwork::codegen {
namespace {

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
  ToolFiles files("meshwork-link", error);
  if (!files.areThere())
    return failure();
  std::string result = files.path("kernels.so");
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
    arguments.push_back(files.path("kernels" + llvm::Twine(i) + ".o"));
    if (!files.write(arguments.back(),
                     StringRef(objects[i].data(), objects[i].size())))
      return failure();
  }
  if (!runLinker(arguments, error))
    return failure();
  return files.read(result);
}

} // namespace meshwork::codegen
