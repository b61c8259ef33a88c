// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %l = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x8x4xf32, strided<[32, 4, 1]>>
    %b = schedule.view %b3 at 0 : memref<2048xi8> to memref<2xi32, strided<[1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<6x4xf32, strided<[4, 1]>>
    // expected-error@+1 {{'schedule.grouped_product' op (C1) begins is i32[2], expected i32[3]}}
    schedule.grouped_product "x" flops 0 bytes 0 %l, %r, %b to %o : memref<6x8xf32, strided<[8, 1]>>, memref<2x8x4xf32, strided<[32, 4, 1]>>, memref<2xi32, strided<[1]>> to memref<6x4xf32, strided<[4, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %l = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xbf16, strided<[8, 1]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x8x4xf32, strided<[32, 4, 1]>>
    %b = schedule.view %b3 at 0 : memref<2048xi8> to memref<3xi32, strided<[1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<6x4xf32, strided<[4, 1]>>
    // expected-error@+1 {{'schedule.grouped_product' op (C2) lhs is bf16[6,8] and rhs f32[2,8,4], expected both f32 or both bf16}}
    schedule.grouped_product "x" flops 0 bytes 0 %l, %r, %b to %o : memref<6x8xbf16, strided<[8, 1]>>, memref<2x8x4xf32, strided<[32, 4, 1]>>, memref<3xi32, strided<[1]>> to memref<6x4xf32, strided<[4, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %l = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x8x4xf32, strided<[1, 2, 16]>>
    %b = schedule.view %b3 at 0 : memref<2048xi8> to memref<3xi32, strided<[1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<6x4xf32, strided<[4, 1]>>
    // expected-error@+1 {{'schedule.grouped_product' op (C3) rhs is f32[2,8,4] with inner strides 2 and 16, expected one of them to be 1}}
    schedule.grouped_product "x" flops 0 bytes 0 %l, %r, %b to %o : memref<6x8xf32, strided<[8, 1]>>, memref<2x8x4xf32, strided<[1, 2, 16]>>, memref<3xi32, strided<[1]>> to memref<6x4xf32, strided<[4, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %l = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x8x4xf32, strided<[32, 4, 1]>>
    %b = schedule.view %b3 at 0 : memref<2048xi8> to memref<3xi32, strided<[1]>>
    %o = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x4xf32, strided<[4, 1]>>
    // expected-error@+1 {{'schedule.grouped_product' op (C4) out and lhs share bytes of buffer "a", expected what is written to lie apart}}
    schedule.grouped_product "x" flops 0 bytes 0 %l, %r, %b to %o : memref<6x8xf32, strided<[8, 1]>>, memref<2x8x4xf32, strided<[32, 4, 1]>>, memref<3xi32, strided<[1]>> to memref<6x4xf32, strided<[4, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %l = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x4x8xf32, strided<[32, 8, 1]>>
    %b = schedule.view %b3 at 0 : memref<2048xi8> to memref<3xi32, strided<[1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<6x4xf32, strided<[4, 1]>>
    // expected-error@+1 {{'schedule.grouped_gradient' op (C1) dst is f32[2,4,8], expected f32[2,8,4]}}
    schedule.grouped_gradient "x" flops 0 bytes 0 no %l, %o, %b to %r : memref<6x8xf32, strided<[8, 1]>>, memref<6x4xf32, strided<[4, 1]>>, memref<3xi32, strided<[1]>> to memref<2x4x8xf32, strided<[32, 8, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %l = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x8x4xbf16, strided<[32, 4, 1]>>
    %b = schedule.view %b3 at 0 : memref<2048xi8> to memref<3xi32, strided<[1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<6x4xf32, strided<[4, 1]>>
    // expected-error@+1 {{'schedule.grouped_gradient' op (C2) dst is bf16[2,8,4], expected f32, or bf16 beside operands of bf16}}
    schedule.grouped_gradient "x" flops 0 bytes 0 no %l, %o, %b to %r : memref<6x8xf32, strided<[8, 1]>>, memref<6x4xf32, strided<[4, 1]>>, memref<3xi32, strided<[1]>> to memref<2x8x4xbf16, strided<[32, 4, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %l = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x8x4xf32, strided<[32, 4, 1]>>
    %b = schedule.view %b3 at 0 : memref<2048xi8> to memref<3xi32, strided<[1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<6x4xf32, strided<[1, 6]>>
    // expected-error@+1 {{'schedule.grouped_gradient' op (C3) rhs is f32[6,4], expected dense rows at one stride}}
    schedule.grouped_gradient "x" flops 0 bytes 0 no %l, %o, %b to %r : memref<6x8xf32, strided<[8, 1]>>, memref<6x4xf32, strided<[1, 6]>>, memref<3xi32, strided<[1]>> to memref<2x8x4xf32, strided<[32, 4, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %l = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %r = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x8x4xf32, strided<[32, 4, 1]>>
    %b = schedule.view %b3 at 0 : memref<2048xi8> to memref<3xi32, strided<[1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<6x4xf32, strided<[4, 1]>>
    // expected-error@+1 {{'schedule.grouped_gradient' op (C4) dst and lhs share bytes of buffer "a", expected what is written to lie apart}}
    schedule.grouped_gradient "x" flops 0 bytes 0 no %l, %o, %b to %r : memref<6x8xf32, strided<[8, 1]>>, memref<6x4xf32, strided<[4, 1]>>, memref<3xi32, strided<[1]>> to memref<2x8x4xf32, strided<[32, 4, 1]>>
  }
}
