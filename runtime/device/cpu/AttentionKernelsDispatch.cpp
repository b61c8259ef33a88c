// Chooses the instruction set of attention's kernels, once per process.
#include "runtime/device/cpu/AttentionKernels.h"

namespace meshwork::runtime::cpu {

const AttentionKernels &attentionKernels() {
  static const AttentionKernels &best =
      __builtin_cpu_supports("x86-64-v4")   ? attentionKernelsV4
      : __builtin_cpu_supports("x86-64-v3") ? attentionKernelsV3
                                            : attentionKernelsBase;
  return best;
}

} // namespace meshwork::runtime::cpu
