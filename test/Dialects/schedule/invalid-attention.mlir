// What attention and its gradient refuse.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x8x2xf32, strided<[16, 2, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C1) lse is f32[1,8,2], expected f32[1,2,8]}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v to %out, %lse causal scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2xf32, strided<[16, 2, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x3x8xf32, strided<[24, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C1) 3 query heads are not a multiple of 2 key heads}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v to %out, %lse causal scale 0.5 : memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>, memref<1x3x8xf32, strided<[24, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xbf16, strided<[16, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C2) q is f32[1,8,2,4], k f32[1,8,1,4], v f32[1,8,1,4] and lse bf16[1,2,8], expected one type, f32 or bf16, and lse of f32}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v to %out, %lse causal scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xbf16, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C3) scale is inf, expected a finite one}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v to %out, %lse causal scale 0x7FF0000000000000 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C3) window is -1, expected 0 or more}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v to %out, %lse causal scale 0.5 window -1 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_doc = schedule.buffer "doc" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %doc = schedule.view %b_doc at 0 : memref<4096xi8> to memref<1x4xi32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C4) documents is i32[1,4], expected i32[1,8]}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v documents %doc : memref<1x4xi32, strided<[4, 1]>> to %out, %lse causal scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C5) has rate 5.000000e-01 and 0 random views, expected 0 and none, or less than 1 and one or two}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v to %out, %lse causal scale 0.5 dropout "attn" rate 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_r0 = schedule.buffer "r0" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %r0 = schedule.view %b_r0 at 0 : memref<4096xi8> to memref<2xi32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C5) dropout.random is i32[2], expected i32[3]}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v random %r0 : memref<2xi32, strided<[1]>> to %out, %lse causal scale 0.5 dropout "attn" rate 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x8x2xf32, strided<[16, 2, 1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C1) lse is f32[1,8,2], expected f32[1,2,8]}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout to %dq, %dk, %dv causal scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2xf32, strided<[16, 2, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x3x8xf32, strided<[24, 8, 1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C1) 3 query heads are not a multiple of 2 key heads}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout to %dq, %dk, %dv causal scale 0.5 : memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>, memref<1x3x8xf32, strided<[24, 8, 1]>>, memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>> to memref<1x8x3x4xf32, strided<[96, 12, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xbf16, strided<[16, 8, 1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C2) q is f32[1,8,2,4], k f32[1,8,1,4], v f32[1,8,1,4] and lse bf16[1,2,8], expected one type, f32 or bf16, and lse of f32}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout to %dq, %dk, %dv causal scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xbf16, strided<[16, 8, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C3) scale is inf, expected a finite one}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout to %dq, %dk, %dv causal scale 0x7FF0000000000000 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C3) window is -1, expected 0 or more}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout to %dq, %dk, %dv causal scale 0.5 window -1 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %b_doc = schedule.buffer "doc" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %doc = schedule.view %b_doc at 0 : memref<4096xi8> to memref<1x4xi32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C4) documents is i32[1,4], expected i32[1,8]}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout documents %doc : memref<1x4xi32, strided<[4, 1]>> to %dq, %dk, %dv causal scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C5) has rate 5.000000e-01 and 0 random views, expected 0 and none, or less than 1 and one or two}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout to %dq, %dk, %dv causal scale 0.5 dropout "attn" rate 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %b_r0 = schedule.buffer "r0" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %r0 = schedule.view %b_r0 at 0 : memref<4096xi8> to memref<2xi32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C5) dropout.random is i32[2], expected i32[3]}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout random %r0 : memref<2xi32, strided<[1]>> to %dq, %dk, %dv causal scale 0.5 dropout "attn" rate 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_doc = schedule.buffer "doc" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %doc = schedule.view %b_doc at 0 : memref<4096xi8> to memref<1x8xi32, strided<[16, 2]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C4) documents are i32[1,8], expected no gaps}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v documents %doc : memref<1x8xi32, strided<[16, 2]>> to %out, %lse causal scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_doc = schedule.buffer "doc" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %doc = schedule.view %b_doc at 0 : memref<4096xi8> to memref<1x8xi32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C4) has documents but is not causal}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v documents %doc : memref<1x8xi32, strided<[8, 1]>> to %out, %lse scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_r0 = schedule.buffer "r0" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %r0 = schedule.view %b_r0 at 0 : memref<4096xi8> to memref<3xi32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C5) has rate 1.000000e+00}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v random %r0 : memref<3xi32, strided<[1]>> to %out, %lse causal scale 0.5 dropout "attn" rate 1.0 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_r0 = schedule.buffer "r0" activations : memref<4096xi8>
  %b_r1 = schedule.buffer "r1" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %r0 = schedule.view %b_r0 at 0 : memref<4096xi8> to memref<3xi32, strided<[1]>>
  %r1 = schedule.view %b_r1 at 0 : memref<4096xi8> to memref<f32, strided<[]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C5) dropout.first_head is f32[], expected one i32}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v random %r0, %r1 : memref<3xi32, strided<[1]>>, memref<f32, strided<[]>> to %out, %lse causal scale 0.5 dropout "attn" rate 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_r0 = schedule.buffer "r0" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %r0 = schedule.view %b_r0 at 0 : memref<4096xi8> to memref<3xi32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C5) dropout is over 1 heads, q alone has 2}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v random %r0 : memref<3xi32, strided<[1]>> to %out, %lse causal scale 0.5 dropout "attn" rate 0.5 heads 1 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C6) dq is f32[1,8,1,4], expected f32[1,8,2,4]}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout to %dq, %dk, %dv causal scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_at = schedule.buffer "at" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %at = schedule.view %b_at at 0 : memref<4096xi8> to memref<7xi32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C7) positions is i32[7], expected i32[8]}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v positions %at : memref<7xi32, strided<[1]>> to %out, %lse causal scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>, memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_at = schedule.buffer "at" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %at = schedule.view %b_at at 0 : memref<4096xi8> to memref<7xi32, strided<[1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C7) positions is i32[7], expected i32[8]}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout positions %at : memref<7xi32, strided<[1]>> to %dq, %dk, %dv causal scale 0.5 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>, memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>, memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_at = schedule.buffer "at" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %at = schedule.view %b_at at 0 : memref<4096xi8> to memref<8xi32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C7) key positions is i32[8], expected i32[16]}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v positions %at : memref<8xi32, strided<[1]>> keys %at : memref<8xi32, strided<[1]>> to %out, %lse causal scale 0.5 keys 32 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>>, memref<1x16x1x4xf32, strided<[64, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention' op (C8) is shared ring, expected nothing of the kind: a program is of one rank}}
    schedule.attention "x" flops 0 bytes 0 %q, %k, %v to %out, %lse causal scale 0.5 shared ring : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_q = schedule.buffer "q" activations : memref<4096xi8>
  %b_k = schedule.buffer "k" activations : memref<4096xi8>
  %b_v = schedule.buffer "v" activations : memref<4096xi8>
  %b_out = schedule.buffer "out" activations : memref<4096xi8>
  %b_lse = schedule.buffer "lse" activations : memref<4096xi8>
  %b_dout = schedule.buffer "dout" activations : memref<4096xi8>
  %b_dq = schedule.buffer "dq" activations : memref<4096xi8>
  %b_dk = schedule.buffer "dk" activations : memref<4096xi8>
  %b_dv = schedule.buffer "dv" activations : memref<4096xi8>
  %q = schedule.view %b_q at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %k = schedule.view %b_k at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %v = schedule.view %b_v at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %out = schedule.view %b_out at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %lse = schedule.view %b_lse at 0 : memref<4096xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
  %dout = schedule.view %b_dout at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dq = schedule.view %b_dq at 0 : memref<4096xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
  %dk = schedule.view %b_dk at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  %dv = schedule.view %b_dv at 0 : memref<4096xi8> to memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.attention_grad' op (C8) is shared ring, expected nothing of the kind: a program is of one rank}}
    schedule.attention_grad "x" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout to %dq, %dk, %dv causal scale 0.5 shared ring : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>, memref<1x8x1x4xf32, strided<[32, 4, 4, 1]>>
  }
}
