// LibFuzzer's entry points. Seeds come from the program, so that a run needs no
// files; a folder of inputs may be given beside them, as always.
#include "test/Fuzz/Fuzz.h"
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

// LibFuzzer's own mutations.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// Seeds that the reader no longer takes would leave what is behind it alone.
extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  for (const std::string &seed : meshwork::fuzz::seeds())
    if (!meshwork::fuzz::accept(seed)) {
      std::fprintf(stderr, "refused, expected a seed to be right:\n%s\n",
                   seed.c_str());
      std::abort();
    }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  meshwork::fuzz::accept({reinterpret_cast<const char *>(data), size});
  return 0;
}

/// Mutates what it is given; now and then, and at the start, a seed.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned random) {
  std::minstd_rand numbers(random);
  if (size < 2 || numbers() % 64 == 0) {
    const std::vector<std::string> &seeds = meshwork::fuzz::seeds();
    const std::string &seed = seeds[numbers() % seeds.size()];
    size = std::min(seed.size(), maxSize);
    std::memcpy(data, seed.data(), size);
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}
