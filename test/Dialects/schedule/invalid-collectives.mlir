// What collectives and waits refuse.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C1) has 0 axes, 1 inputs, 1 outputs, 1 dims and 1 to_dims, expected one or more, and as many}}
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
    // expected-error@+1 {{'schedule.collective' op (C1) has 1 axes, 1 inputs, 2 outputs}}
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
    // expected-error@+1 {{'schedule.collective' op (C2) moves 'memref<4x8xf32, strided<[8, 1]>>' to 'memref<4x8xbf16, strided<[8, 1]>>', expected one element type and as many dims}}
    schedule.collective "x" flops 0 bytes 0 all_reduce sum over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xbf16, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xi32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xi32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C2) reduces 'memref<4x8xi32, strided<[8, 1]>>', expected f32 or bf16}}
    schedule.collective "x" flops 0 bytes 0 all_reduce sum over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xi32, strided<[8, 1]>> to memref<4x8xi32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %b_o0 = schedule.buffer "o0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %o0 = schedule.view %b_o0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C3) has dim 2 of 'memref<4x8xf32, strided<[8, 1]>>', expected one of its dims}}
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
    // expected-error@+1 {{'schedule.collective' op (C3) has dim 1 of 'memref<4x8xf32, strided<[8, 1]>>', expected 0, since there is none}}
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
    // expected-error@+1 {{'schedule.collective' op (C3) has to_dim 1 of}}
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
    // expected-error@+1 {{'schedule.collective' op (C4) moves 'memref<4x8xf32, strided<[8, 1]>>' to 'memref<2x8xf32, strided<[8, 1]>>', expected no fewer elements in dim 0}}
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
    // expected-error@+1 {{'schedule.collective' op (C4) moves 'memref<4x8xf32, strided<[8, 1]>>' to 'memref<4x4xf32, strided<[4, 1]>>', expected as many elements in dim 1}}
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
    // expected-error@+1 {{'schedule.collective' op (C4) moves 'memref<4x8xf32, strided<[8, 1]>>' to 'memref<4x16xf32, strided<[16, 1]>>', expected no more elements in dim 1}}
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
    // expected-error@+1 {{'schedule.collective' op (C4) moves}}
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
    // expected-error@+1 {{'schedule.collective' op (C5) has the sources [0], expected an index, or -1, for each rank of a permute, and none of others}}
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
    // expected-error@+1 {{'schedule.collective' op (C5) has the sources [0, 2]}}
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
    // expected-error@+1 {{'schedule.collective' op (C6) is all_gather with the reduction max, expected sum, since it reduces nothing}}
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
    // expected-error@+1 {{'schedule.collective' op (C7) has channel 9, expected 0 to 8}}
    schedule.collective "x" flops 0 bytes 0 all_reduce sum channel 9 over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%o0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_x = schedule.buffer "x" activations : memref<4096xi8>
  %x = schedule.view %b_x at 0 : memref<4096xi8> to memref<4xf32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.wait' op (C1) waits for 1 collectives of channel 0, expected one or more of channel 1 to 8}}
    schedule.wait "x" flops 0 bytes 0 0 count 1 (%x) : memref<4xf32, strided<[1]>>
  }
}

// -----
schedule.program @rank {
  schedule.list update {
    // expected-error@+1 {{(C1) waits for 0 collectives of channel 1}}
    schedule.wait "x" flops 0 bytes 0 1 count 0
  }
}

// -----
schedule.program @rank {
  %b_i0 = schedule.buffer "i0" activations : memref<4096xi8>
  %i0 = schedule.view %b_i0 at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.collective' op (C8) is all_reduce max in any order, expected all_reduce or reduce_scatter, and sum}}
    schedule.collective "x" flops 0 bytes 0 all_reduce max any_order over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%i0) to (%i0) : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}
