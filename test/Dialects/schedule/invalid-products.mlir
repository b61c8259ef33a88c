// What products refuse.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C1) rhs is f32[1,4,8], expected f32[1,8,8]}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x4x8xf32, strided<[32, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C1) lhs is f32[4,8], expected 3 dims}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs to %dst : memref<4x8xf32, strided<[8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[64, 16, 2]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C1) f32[1,4,8] has inner strides 16 and 2, expected one of them to be 1}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs to %dst : memref<1x4x8xf32, strided<[64, 16, 2]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xi32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C2) dst is i32[1,4,8], expected f32 or bf16}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xi32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xbf16, strided<[64, 8, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C2) lhs is f32[1,4,8] and rhs bf16[1,8,8], expected both f32 or bf16, or both of 8 bits and not both e5m2}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xbf16, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_s0 = schedule.buffer "s0" activations : memref<4096xi8>
  %b_s1 = schedule.buffer "s1" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf8E5M2, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf8E5M2, strided<[64, 1, 8]>>
  %s0 = schedule.view %b_s0 at 0 : memref<4096xi8> to memref<f32, strided<[]>>
  %s1 = schedule.view %b_s1 at 0 : memref<4096xi8> to memref<f32, strided<[]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C2) lhs is e5m2[1,4,8] and rhs e5m2[1,8,8], expected both f32 or bf16, or both of 8 bits and not both e5m2}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs scaled %s0, %s1 : memref<f32, strided<[]>>, memref<f32, strided<[]>> to %dst : memref<1x4x8xf8E5M2, strided<[32, 8, 1]>>, memref<1x8x8xf8E5M2, strided<[64, 1, 8]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_s0 = schedule.buffer "s0" activations : memref<4096xi8>
  %b_s1 = schedule.buffer "s1" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf8E5M2, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf8E4M3FN, strided<[64, 8, 1]>>
  %s0 = schedule.view %b_s0 at 0 : memref<4096xi8> to memref<f32, strided<[]>>
  %s1 = schedule.view %b_s1 at 0 : memref<4096xi8> to memref<f32, strided<[]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C2) lhs is e5m2[1,4,8] and rhs e4m3[1,8,8], expected both dense along the dim that is summed}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs scaled %s0, %s1 : memref<f32, strided<[]>>, memref<f32, strided<[]>> to %dst : memref<1x4x8xf8E5M2, strided<[32, 8, 1]>>, memref<1x8x8xf8E4M3FN, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf8E5M2, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf8E4M3FN, strided<[64, 1, 8]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C3) there is no lhs_scale, expected one beside operands of 8 bits}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs to %dst : memref<1x4x8xf8E5M2, strided<[32, 8, 1]>>, memref<1x8x8xf8E4M3FN, strided<[64, 1, 8]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_s0 = schedule.buffer "s0" activations : memref<4096xi8>
  %b_s1 = schedule.buffer "s1" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %s0 = schedule.view %b_s0 at 0 : memref<4096xi8> to memref<f32, strided<[]>>
  %s1 = schedule.view %b_s1 at 0 : memref<4096xi8> to memref<f32, strided<[]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C3) there is a lhs_scale, expected none without operands of 8 bits}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs scaled %s0, %s1 : memref<f32, strided<[]>>, memref<f32, strided<[]>> to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_s0 = schedule.buffer "s0" activations : memref<4096xi8>
  %b_s1 = schedule.buffer "s1" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf8E5M2, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf8E4M3FN, strided<[64, 1, 8]>>
  %s0 = schedule.view %b_s0 at 0 : memref<4096xi8> to memref<f32, strided<[]>>
  %s1 = schedule.view %b_s1 at 0 : memref<4096xi8> to memref<2xf32, strided<[1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C3) rhs_scale is f32[2], expected one f32}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs scaled %s0, %s1 : memref<f32, strided<[]>>, memref<2xf32, strided<[1]>> to %dst : memref<1x4x8xf8E5M2, strided<[32, 8, 1]>>, memref<1x8x8xf8E4M3FN, strided<[64, 1, 8]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_bias = schedule.buffer "bias" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %bias = schedule.view %b_bias at 0 : memref<4096xi8> to memref<4xf32, strided<[1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C4) bias is f32[4], expected 8 elements of f32 or bf16}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs bias %bias : memref<4xf32, strided<[1]>> to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_bias = schedule.buffer "bias" activations : memref<4096xi8>
  %b_aux = schedule.buffer "aux" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %bias = schedule.view %b_bias at 0 : memref<4096xi8> to memref<8xf32, strided<[1]>>
  %aux = schedule.view %b_aux at 0 : memref<4096xi8> to memref<8xf32, strided<[1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C4) it has a bias and the epilogue sum_rhs, expected one of them}}
    schedule.matmul "x" flops 0 bytes 0 no epilogue sum_rhs %lhs, %rhs bias %bias : memref<8xf32, strided<[1]>> aux %aux : memref<8xf32, strided<[1]>> to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_aux = schedule.buffer "aux" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %aux = schedule.view %b_aux at 0 : memref<4096xi8> to memref<8xf32, strided<[1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C5) there is an aux, expected none without an epilogue}}
    schedule.matmul "x" flops 0 bytes 0 no %lhs, %rhs aux %aux : memref<8xf32, strided<[1]>> to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C5) there is no aux, expected one of gelu_grad}}
    schedule.matmul "x" flops 0 bytes 0 no epilogue gelu_grad %lhs, %rhs to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<2x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<2x8x8xf32, strided<[64, 8, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<2x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C5) lhs is f32[2,4,8], expected one product of f32 or bf16 beside an epilogue}}
    schedule.matmul "x" flops 0 bytes 0 no epilogue gelu %lhs, %rhs to %dst : memref<2x4x8xf32, strided<[32, 8, 1]>>, memref<2x8x8xf32, strided<[64, 8, 1]>> to memref<2x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %aux = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C5) aux shares buffer "lhs" with another operand, expected one of its own}}
    schedule.matmul "x" flops 0 bytes 0 no epilogue gelu %lhs, %rhs aux %aux : memref<1x4x8xf32, strided<[32, 8, 1]>> to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C6) it has a GELU and adds to dst, expected accumulate no}}
    schedule.matmul "x" flops 0 bytes 0 yes epilogue gelu %lhs, %rhs to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 1, 4]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C6) dst is f32[1,4,8] with strides 1, 4, expected dense rows beside a GELU}}
    schedule.matmul "x" flops 0 bytes 0 no epilogue gelu %lhs, %rhs to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 1, 4]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_aux = schedule.buffer "aux" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %aux = schedule.view %b_aux at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[48, 12, 1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C6) aux is f32[1,4,8] with strides 12, 1, expected dense rows a multiple of 8 elements apart}}
    schedule.matmul "x" flops 0 bytes 0 no epilogue gelu_grad %lhs, %rhs aux %aux : memref<1x4x8xf32, strided<[48, 12, 1]>> to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_aux = schedule.buffer "aux" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %aux = schedule.view %b_aux at 0 : memref<4096xi8> to memref<8xf32, strided<[1]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C7) aux is f32[8], expected f32[4]}}
    schedule.matmul "x" flops 0 bytes 0 no epilogue sum_lhs %lhs, %rhs aux %aux : memref<8xf32, strided<[1]>> to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_lhs = schedule.buffer "lhs" activations : memref<4096xi8>
  %b_rhs = schedule.buffer "rhs" activations : memref<4096xi8>
  %b_aux = schedule.buffer "aux" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %lhs = schedule.view %b_lhs at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  %rhs = schedule.view %b_rhs at 0 : memref<4096xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
  %aux = schedule.view %b_aux at 0 : memref<4096xi8> to memref<8xf32, strided<[2]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.matmul' op (C7) aux has stride 2, expected dense sums}}
    schedule.matmul "x" flops 0 bytes 0 no epilogue sum_rhs %lhs, %rhs aux %aux : memref<8xf32, strided<[2]>> to %dst : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
}
