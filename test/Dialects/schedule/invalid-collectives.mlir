// What collectives and waits refuse.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C1) a collective needs an axis and a part}}
    schedule.collective "x" flops 0 bytes 0 all_reduce sum over [] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %b_o1 = schedule.buffer "o1" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o1 = schedule.view %b_o1 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C1) has 1 inputs, 2 outputs, 1 dims and 1 to_dims, expected as many}}
    schedule.collective "x" flops 0 bytes 0 all_reduce sum over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0, %o1) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>, memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xbf16, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C2) part 0: src is f32[4,8], dst bf16[4,8], expected one element type and as many dims}}
    schedule.collective "x" flops 0 bytes 0 all_reduce sum over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xbf16, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf8E4M3FN, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf8E4M3FN, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C2) part 0: it reduces e4m3[4,8], expected f32, bf16 or i32}}
    schedule.collective "x" flops 0 bytes 0 all_reduce sum over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xf8E4M3FN, strided<[8, 1]>> to memref<4x8xf8E4M3FN, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C3) part 0: dim is 2, src is f32[4,8]}}
    schedule.collective "x" flops 0 bytes 0 all_gather sum over ["dp"] in forward cause "why" dims [2] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C3) part 0: dim is 1, this kind has none}}
    schedule.collective "x" flops 0 bytes 0 all_reduce sum over ["dp"] in forward cause "why" dims [1] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C3) part 0: to_dim is 1, this kind has none}}
    schedule.collective "x" flops 0 bytes 0 all_gather sum over ["dp"] in forward cause "why" dims [0] to [1] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<2x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C4) part 0: one block is f32[4,8], expected f32[2,8], a part of dim 0 of f32[2,8]}}
    schedule.collective "x" flops 0 bytes 0 all_gather sum over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<2x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x4xf32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C4) part 0: one block is f32[4,4], expected f32[4,8], a part of dim 0 of f32[4,8]}}
    schedule.collective "x" flops 0 bytes 0 reduce_scatter sum over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x4xf32, strided<[4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x16xf32, strided<[16, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C4) part 0: one block is f32[4,16], expected f32[4,8], a part of dim 1 of f32[4,8]}}
    schedule.collective "x" flops 0 bytes 0 all_to_all sum over ["dp"] in forward cause "why" dims [0] to [1] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x16xf32, strided<[16, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<8x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C4) part 0: src is f32[4,8], dst f32[8,8], expected one shape that ranks divide in dim 0}}
    schedule.collective "x" flops 0 bytes 0 all_to_all sum over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<8x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C5) all_reduce has 1 sources, expected none: only permute has sources}}
    schedule.collective "x" flops 0 bytes 0 all_reduce sum over ["dp"] in forward cause "why" dims [0] to [0] sources [0] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C5) permute has the source 2 in groups of 2}}
    schedule.collective "x" flops 0 bytes 0 permute sum over ["dp"] in forward cause "why" dims [0] to [0] sources [0, 2] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<8x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C6) all_gather reduces nothing, expected the reduction sum}}
    schedule.collective "x" flops 0 bytes 0 all_gather max over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<8x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C7) channel 9, expected at most 8}}
    schedule.collective "x" flops 0 bytes 0 all_reduce sum channel 9 over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_x = schedule.buffer "x" activations : memref<4096xi8>
  %x = schedule.view %b_x at 0 : memref<4096xi8> to memref<4xf32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.wait' op (C1) waits for channel 0, expected 1 to 8}}
    schedule.wait "x" flops 0 bytes 0 0 count 1 (%x) : memref<4xf32, strided<[1]>>
  }
}

// -----
schedule.program @rank {
  schedule.list update {
    // expected-error@+1 {{(C1) waits for the first 0 of channel 1, expected 1 or more}}
    schedule.wait "x" flops 0 bytes 0 1 count 0
  }
}

// -----
schedule.program @rank {
  schedule.list update {
    // expected-error@+1 {{'schedule.wait' op has a number that a plan cannot hold}}
    schedule.wait "x" flops 0 bytes 0 1 count 4294967297
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C8) all_reduce with max in any order, expected the sum of an all_reduce or a reduce_scatter}}
    schedule.collective "x" flops 0 bytes 0 all_reduce max any_order over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%i0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}
