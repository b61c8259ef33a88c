// Stands for a plan's generated code: a shared object with the kernels' ABI.
#include <stdint.h>

// c[i] = a[i] + 2 b[i]
void test_add(void *const *args, int64_t begin, int64_t end) {
  const float *a = (const float *)args[0], *b = (const float *)args[1];
  float *c = (float *)args[2];
  for (int64_t i = begin; i < end; ++i)
    c[i] = a[i] + 2 * b[i];
}
