// RUN: not meshwork-opt %s -transformer-precision="compute=f16" 2>&1 | FileCheck %s

// CHECK: compute option: found 'f16', expected bf16 or f32
module {
}
