// What a .cu file needs where no CUDA SDK is installed: clang knows the rest.
#pragma once

#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))

DEVICE inline unsigned threadX() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE inline unsigned blockX() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE inline unsigned threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
