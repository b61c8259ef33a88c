// Device functions that are not inlined, structs by value, arrays in local
// memory, atomics, integer division, 64-bit arithmetic, a switch.
#include "Kernel.h"

struct Item {
  int weights[5];
  double scale;
};

DEVICE __attribute__((noinline)) long polynomial(Item item, long x) {
  long result = 0;
  for (int i = 4; i >= 0; --i)
    result = result * x + item.weights[i];
  return result;
}
DEVICE __attribute__((noinline)) Item reversed(const Item &item) {
  Item result = item;
  for (int i = 0; i < 5; ++i)
    result.weights[i] = item.weights[4 - i];
  return result;
}
DEVICE __attribute__((noinline)) int branch(int kind, int x) {
  switch (kind) {
  case 0:
    return x * 3;
  case 1:
    return x / 7;
  case 2:
    return x % 11;
  case 3:
    return x ^ 0x55;
  case 4:
    return __builtin_popcount(x);
  case 5:
    return __builtin_clz(x | 1);
  default:
    return -x;
  }
}

KERNEL calls(long *out, int *count, Item item, int n) {
  int i = blockX() * threads() + threadX();
  if (i >= n)
    return;
  Item turned = reversed(item);
  long value = polynomial(i % 2 ? turned : item, i % 50);
  int sorted[8];
  for (int k = 0; k < 8; ++k)
    sorted[k] = (i * 37 + k * 101) % 64;
  for (int a = 0; a < 8; ++a) // an index that only run time knows
    for (int b = a + 1; b < 8; ++b)
      if (sorted[b] < sorted[a]) {
        int swap = sorted[a];
        sorted[a] = sorted[b];
        sorted[b] = swap;
      }
  out[i] = value + branch(i % 8, i) * 1000000l + sorted[i % 8] +
           (long)(item.scale * i);
  __nvvm_atom_add_gen_i(count, 1);
}
