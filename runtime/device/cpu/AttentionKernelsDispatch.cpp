// Chooses the instruction set of attention's kernels, once per process.
#include "runtime/device/cpu/AttentionKernels.h"

namespace meshwork::runtime::cpu {

namespace {

const AttentionKernels &choose() {
  if (__builtin_cpu_supports("x86-64-v4"))
    return __builtin_cpu_supports("avx512bf16") ? attentionKernelsV4Bf16
                                                : attentionKernelsV4;
  return __builtin_cpu_supports("x86-64-v3") ? attentionKernelsV3
                                             : attentionKernelsBase;
}

} // namespace

const AttentionKernels &attentionKernels() {
  static const AttentionKernels &best = choose();
  return best;
}

} // namespace meshwork::runtime::cpu
