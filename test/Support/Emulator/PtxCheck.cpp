// ptx-check FILE...: reads PTX as the emulator does and names the kernels, or
// says what it cannot run. For tests of the compiler's output.
#include "test/Support/Emulator/KernelTest.h"

#include <cstdio>

int main(int argc, char **argv) {
  int failed = argc < 2;
  if (failed)
    std::fprintf(stderr, "usage: ptx-check FILE...\n");
  for (int i = 1; i < argc; ++i) {
    auto kernels = meshwork::ptx::Kernels::fromFile(argv[i]);
    if (!kernels.status().ok()) {
      std::fprintf(stderr, "%s: error: %s\n", argv[i],
                   std::string(kernels.status().message()).c_str());
      failed = 1;
      continue;
    }
    for (const std::string &name : kernels.module->kernels())
      std::printf("%s sm_%d, %zu instructions\n", name.c_str(),
                  kernels.module->architecture(),
                  kernels.module->kernel(name)->code.size());
  }
  return failed;
}
