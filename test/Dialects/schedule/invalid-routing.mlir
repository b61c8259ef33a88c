// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x8xf32, strided<[8, 1]>>
    %c = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xf32, strided<[3, 1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x3xf32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.pick' op (C1) choices are f32[2,3], expected i32[rows...,k]}}
    schedule.pick "x" flops 0 bytes 0 %s, %c to %o : memref<2x8xf32, strided<[8, 1]>>, memref<2x3xf32, strided<[3, 1]>> to memref<2x3xf32, strided<[3, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x8xf32, strided<[16, 2]>>
    %c = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x3xf32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.pick' op (C2) scores is f32[2,8], expected dense rows at one stride}}
    schedule.pick "x" flops 0 bytes 0 %s, %c to %o : memref<2x8xf32, strided<[16, 2]>>, memref<2x3xi32, strided<[3, 1]>> to memref<2x3xf32, strided<[3, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x8xf32, strided<[8, 1]>>
    %c = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %o = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xf32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.pick' op (C3) out and scores share bytes of buffer "a", expected what is written to lie apart}}
    schedule.pick "x" flops 0 bytes 0 %s, %c to %o : memref<2x8xf32, strided<[8, 1]>>, memref<2x3xi32, strided<[3, 1]>> to memref<2x3xf32, strided<[3, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<3x8xf32, strided<[8, 1]>>
    %c = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x3xf32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.pick_grad' op (C1) dscores is f32[3,8], expected f32[rows...,experts] with the rows of choices i32[2,3]}}
    schedule.pick_grad "x" flops 0 bytes 0 %c, %o to %s : memref<2x3xi32, strided<[3, 1]>>, memref<2x3xf32, strided<[3, 1]>> to memref<3x8xf32, strided<[8, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x8xf32, strided<[8, 1]>>
    %c = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[1, 2]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x3xf32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.pick_grad' op (C2) choices is i32[2,3], expected dense rows at one stride}}
    schedule.pick_grad "x" flops 0 bytes 0 %c, %o to %s : memref<2x3xi32, strided<[1, 2]>>, memref<2x3xf32, strided<[3, 1]>> to memref<2x8xf32, strided<[8, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x8xf32, strided<[8, 1]>>
    %c = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %o = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xf32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.pick_grad' op (C3) dscores and dout share bytes of buffer "a", expected what is written to lie apart}}
    schedule.pick_grad "x" flops 0 bytes 0 %c, %o to %s : memref<2x3xi32, strided<[3, 1]>>, memref<2x3xf32, strided<[3, 1]>> to memref<2x8xf32, strided<[8, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %f = schedule.view %b0 at 64 : memref<2048xi8> to memref<i32, strided<[]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<6xi32, strided<[1]>>
    %t = schedule.view %b1 at 64 : memref<2048xi8> to memref<6xi32, strided<[1]>>
    %p = schedule.view %b2 at 0 : memref<2048xi8> to memref<3x2xi32, strided<[2, 1]>>
    %b = schedule.view %b2 at 64 : memref<2048xi8> to memref<5xi32, strided<[1]>>
    // expected-error@+1 {{'schedule.sort_rows' op (C1) places is i32[3,2], expected i32[2,3]}}
    schedule.sort_rows "x" flops 0 bytes 0 %c from %f : memref<i32, strided<[]>> to %r, %t, %p, %b : memref<2x3xi32, strided<[3, 1]>> to memref<6xi32, strided<[1]>>, memref<6xi32, strided<[1]>>, memref<3x2xi32, strided<[2, 1]>>, memref<5xi32, strided<[1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %f = schedule.view %b0 at 64 : memref<2048xi8> to memref<i32, strided<[]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<6xi32, strided<[1]>>
    %t = schedule.view %b1 at 64 : memref<2048xi8> to memref<6xi32, strided<[1]>>
    %p = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %b = schedule.view %b2 at 64 : memref<2048xi8> to memref<1xi32, strided<[1]>>
    // expected-error@+1 {{'schedule.sort_rows' op (C2) begins is i32[1], expected one more than experts, of which there is one}}
    schedule.sort_rows "x" flops 0 bytes 0 %c from %f : memref<i32, strided<[]>> to %r, %t, %p, %b : memref<2x3xi32, strided<[3, 1]>> to memref<6xi32, strided<[1]>>, memref<6xi32, strided<[1]>>, memref<2x3xi32, strided<[3, 1]>>, memref<1xi32, strided<[1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %f = schedule.view %b0 at 64 : memref<2048xi8> to memref<i32, strided<[]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<5xi32, strided<[1]>>
    %t = schedule.view %b1 at 64 : memref<2048xi8> to memref<5xi32, strided<[1]>>
    %p = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %b = schedule.view %b2 at 64 : memref<2048xi8> to memref<5xi32, strided<[1]>>
    // expected-error@+1 {{'schedule.sort_rows' op (C3) has 5 rows for 2 tokens of 3 choices and 4 experts, expected at least 6}}
    schedule.sort_rows "x" flops 0 bytes 0 %c from %f : memref<i32, strided<[]>> to %r, %t, %p, %b : memref<2x3xi32, strided<[3, 1]>> to memref<5xi32, strided<[1]>>, memref<5xi32, strided<[1]>>, memref<2x3xi32, strided<[3, 1]>>, memref<5xi32, strided<[1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %f = schedule.view %b0 at 64 : memref<2048xi8> to memref<2xi32, strided<[1]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<6xi32, strided<[1]>>
    %t = schedule.view %b1 at 64 : memref<2048xi8> to memref<6xi32, strided<[1]>>
    %p = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %b = schedule.view %b2 at 64 : memref<2048xi8> to memref<5xi32, strided<[1]>>
    // expected-error@+1 {{'schedule.sort_rows' op (C4) first_expert is i32[2], expected one i32}}
    schedule.sort_rows "x" flops 0 bytes 0 %c from %f : memref<2xi32, strided<[1]>> to %r, %t, %p, %b : memref<2x3xi32, strided<[3, 1]>> to memref<6xi32, strided<[1]>>, memref<6xi32, strided<[1]>>, memref<2x3xi32, strided<[3, 1]>>, memref<5xi32, strided<[1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %f = schedule.view %b0 at 64 : memref<2048xi8> to memref<i32, strided<[]>>
    %r = schedule.view %b1 at 0 : memref<2048xi8> to memref<6xi32, strided<[1]>>
    %t = schedule.view %b1 at 8 : memref<2048xi8> to memref<6xi32, strided<[1]>>
    %p = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %b = schedule.view %b2 at 64 : memref<2048xi8> to memref<5xi32, strided<[1]>>
    // expected-error@+1 {{'schedule.sort_rows' op (C5) tokens and order share bytes of buffer "b", expected what is written to lie apart}}
    schedule.sort_rows "x" flops 0 bytes 0 %c from %f : memref<i32, strided<[]>> to %r, %t, %p, %b : memref<2x3xi32, strided<[3, 1]>> to memref<6xi32, strided<[1]>>, memref<6xi32, strided<[1]>>, memref<2x3xi32, strided<[3, 1]>>, memref<5xi32, strided<[1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<7x8xf32, strided<[8, 1]>>
    %c = schedule.view %b1 at 0 : memref<2048xi8> to memref<3xi32, strided<[2]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<3x8xf32, strided<[8, 1]>>
    // expected-error@+1 {{'schedule.take_rows' op (C1) rows is i32[3] with gaps, expected none}}
    schedule.take_rows "x" flops 0 bytes 0 %s, %c to %o : memref<7x8xf32, strided<[8, 1]>>, memref<3xi32, strided<[2]>> to memref<3x8xf32, strided<[8, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<7x8xf32, strided<[8, 1]>>
    %c = schedule.view %b1 at 0 : memref<2048xi8> to memref<3xi32, strided<[1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<3x7xf32, strided<[7, 1]>>
    // expected-error@+1 {{'schedule.take_rows' op (C2) out is f32[3,7], expected f32[3,8]}}
    schedule.take_rows "x" flops 0 bytes 0 %s, %c to %o : memref<7x8xf32, strided<[8, 1]>>, memref<3xi32, strided<[1]>> to memref<3x7xf32, strided<[7, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<7x8xf32, strided<[1, 7]>>
    %c = schedule.view %b1 at 0 : memref<2048xi8> to memref<3xi32, strided<[1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<3x8xf32, strided<[8, 1]>>
    // expected-error@+1 {{'schedule.take_rows' op (C3) table is f32[7,8], expected dense rows at one stride}}
    schedule.take_rows "x" flops 0 bytes 0 %s, %c to %o : memref<7x8xf32, strided<[1, 7]>>, memref<3xi32, strided<[1]>> to memref<3x8xf32, strided<[8, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<7x8xf32, strided<[8, 1]>>
    %c = schedule.view %b2 at 32 : memref<2048xi8> to memref<3xi32, strided<[1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<3x8xf32, strided<[8, 1]>>
    // expected-error@+1 {{'schedule.take_rows' op (C4) out and rows share bytes of buffer "c", expected what is written to lie apart}}
    schedule.take_rows "x" flops 0 bytes 0 %s, %c to %o : memref<7x8xf32, strided<[8, 1]>>, memref<3xi32, strided<[1]>> to memref<3x8xf32, strided<[8, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %p = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %c = schedule.view %b1 at 64 : memref<2048xi8> to memref<2x3xf32, strided<[3, 1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x8xf32, strided<[8, 1]>>
    // expected-error@+1 {{'schedule.combine_rows' op (C1) choices is f32[2,3], expected i32}}
    schedule.combine_rows "x" flops 0 bytes 0 %s, %p, %c to %o : memref<6x8xf32, strided<[8, 1]>>, memref<2x3xi32, strided<[3, 1]>>, memref<2x3xf32, strided<[3, 1]>> to memref<2x8xf32, strided<[8, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %p = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %c = schedule.view %b1 at 64 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x3x8xf32, strided<[24, 8, 1]>>
    // expected-error@+1 {{'schedule.combine_rows' op (C2) out is f32[2,3,8], expected f32[2,8]}}
    schedule.combine_rows "x" flops 0 bytes 0 %s, %p, %c to %o : memref<6x8xf32, strided<[8, 1]>>, memref<2x3xi32, strided<[3, 1]>>, memref<2x3xi32, strided<[3, 1]>> to memref<2x3x8xf32, strided<[24, 8, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %p = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %c = schedule.view %b1 at 64 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %o = schedule.view %b2 at 0 : memref<2048xi8> to memref<2x8xf32, strided<[1, 2]>>
    // expected-error@+1 {{'schedule.combine_rows' op (C3) out is f32[2,8], expected dense rows at one stride}}
    schedule.combine_rows "x" flops 0 bytes 0 %s, %p, %c to %o : memref<6x8xf32, strided<[8, 1]>>, memref<2x3xi32, strided<[3, 1]>>, memref<2x3xi32, strided<[3, 1]>> to memref<2x8xf32, strided<[1, 2]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  %b2 = schedule.buffer "c" activations persistent : memref<2048xi8>
  %b3 = schedule.buffer "d" activations persistent : memref<2048xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<2048xi8> to memref<6x8xf32, strided<[8, 1]>>
    %p = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %c = schedule.view %b1 at 64 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %o = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x8xf32, strided<[8, 1]>>
    // expected-error@+1 {{'schedule.combine_rows' op (C4) out and src share bytes of buffer "a", expected what is written to lie apart}}
    schedule.combine_rows "x" flops 0 bytes 0 %s, %p, %c to %o : memref<6x8xf32, strided<[8, 1]>>, memref<2x3xi32, strided<[3, 1]>>, memref<2x3xi32, strided<[3, 1]>> to memref<2x8xf32, strided<[8, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %s = schedule.view %b0 at 128 : memref<2048xi8> to memref<4x1xi32, strided<[1, 1]>>
    %r = schedule.view %b0 at 64 : memref<2048xi8> to memref<3x2xi32, strided<[2, 1]>>
    %p = schedule.view %b0 at 256 : memref<2048xi8> to memref<4x2xi32, strided<[2, 1]>>
    %l = schedule.view %b0 at 512 : memref<2048xi8> to memref<i32, strided<[]>>
    // expected-error@+1 {{'schedule.assign_slots' op (C1) ranks are i32[3,2], a rank has 2 experts; expected the tokens of choices i32[2,3], and 1 or more}}
    schedule.assign_slots "x" flops 0 bytes 0 %c experts 2 most 4 to %s, %r, %p, %l : memref<2x3xi32, strided<[3, 1]>> to memref<4x1xi32, strided<[1, 1]>>, memref<3x2xi32, strided<[2, 1]>>, memref<4x2xi32, strided<[2, 1]>>, memref<i32, strided<[]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %s = schedule.view %b0 at 128 : memref<2048xi8> to memref<4x1xi32, strided<[1, 1]>>
    %r = schedule.view %b0 at 64 : memref<2048xi8> to memref<2x2xi32, strided<[2, 1]>>
    %p = schedule.view %b0 at 256 : memref<2048xi8> to memref<4x2xi32, strided<[2, 1]>>
    %l = schedule.view %b0 at 512 : memref<2048xi8> to memref<i32, strided<[]>>
    // expected-error@+1 {{'schedule.assign_slots' op (C1) ranks are i32[2,2], a rank has 0 experts}}
    schedule.assign_slots "x" flops 0 bytes 0 %c experts 0 most 4 to %s, %r, %p, %l : memref<2x3xi32, strided<[3, 1]>> to memref<4x1xi32, strided<[1, 1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<4x2xi32, strided<[2, 1]>>, memref<i32, strided<[]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %s = schedule.view %b0 at 128 : memref<2048xi8> to memref<4x1xi32, strided<[1, 1]>>
    %r = schedule.view %b0 at 64 : memref<2048xi8> to memref<2x2xi32, strided<[2, 1]>>
    %p = schedule.view %b0 at 256 : memref<2048xi8> to memref<3x2xi32, strided<[2, 1]>>
    %l = schedule.view %b0 at 512 : memref<2048xi8> to memref<i32, strided<[]>>
    // expected-error@+1 {{'schedule.assign_slots' op (C2) places are i32[3,2] and slots i32[4,1], expected a multiple of ranks i32[2,2], slots of as many rounds, and fewer than 2^31 of each}}
    schedule.assign_slots "x" flops 0 bytes 0 %c experts 2 most 4 to %s, %r, %p, %l : memref<2x3xi32, strided<[3, 1]>> to memref<4x1xi32, strided<[1, 1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<3x2xi32, strided<[2, 1]>>, memref<i32, strided<[]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %s = schedule.view %b0 at 128 : memref<2048xi8> to memref<4x1xi32, strided<[1, 1]>>
    %r = schedule.view %b0 at 64 : memref<2048xi8> to memref<2x2xi32, strided<[2, 1]>>
    %p = schedule.view %b0 at 256 : memref<2048xi8> to memref<2x2xi32, strided<[2, 1]>>
    %l = schedule.view %b0 at 512 : memref<2048xi8> to memref<i32, strided<[]>>
    // expected-error@+1 {{'schedule.assign_slots' op (C3) has 1 rounds of 1 slots and 4 choices for 2 tokens with 2 on a rank, and places for 2 ranks of a token, expected 3}}
    schedule.assign_slots "x" flops 0 bytes 0 %c experts 2 most 4 to %s, %r, %p, %l : memref<2x3xi32, strided<[3, 1]>> to memref<4x1xi32, strided<[1, 1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<i32, strided<[]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %s = schedule.view %b0 at 128 : memref<2048xi8> to memref<4x1xi32, strided<[1, 1]>>
    %r = schedule.view %b0 at 64 : memref<2048xi8> to memref<2x2xi32, strided<[2, 1]>>
    %p = schedule.view %b0 at 256 : memref<2048xi8> to memref<4x2xi32, strided<[2, 1]>>
    %l = schedule.view %b0 at 512 : memref<2048xi8> to memref<2xi32, strided<[1]>>
    // expected-error@+1 {{'schedule.assign_slots' op (C4) last is i32[2], expected one i32}}
    schedule.assign_slots "x" flops 0 bytes 0 %c experts 2 most 4 to %s, %r, %p, %l : memref<2x3xi32, strided<[3, 1]>> to memref<4x1xi32, strided<[1, 1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<4x2xi32, strided<[2, 1]>>, memref<2xi32, strided<[1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %s = schedule.view %b0 at 128 : memref<2048xi8> to memref<4x1xi32, strided<[1, 1]>>
    %r = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x2xi32, strided<[2, 1]>>
    %p = schedule.view %b0 at 256 : memref<2048xi8> to memref<4x2xi32, strided<[2, 1]>>
    %l = schedule.view %b0 at 512 : memref<2048xi8> to memref<i32, strided<[]>>
    // expected-error@+1 {{'schedule.assign_slots' op (C5) ranks and choices share bytes of buffer "a", expected what is written to lie apart}}
    schedule.assign_slots "x" flops 0 bytes 0 %c experts 2 most 4 to %s, %r, %p, %l : memref<2x3xi32, strided<[3, 1]>> to memref<4x1xi32, strided<[1, 1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<4x2xi32, strided<[2, 1]>>, memref<i32, strided<[]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %k = schedule.view %b1 at 0 : memref<2048xi8> to memref<3x2xi32, strided<[2, 1]>>
    // expected-error@+1 {{'schedule.limit_choices' op (C1) kept is i32[3,2], expected i32[2,3]}}
    schedule.limit_choices "x" flops 0 bytes 0 %c experts 4 most 1 group 2 to %k : memref<2x3xi32, strided<[3, 1]>> to memref<3x2xi32, strided<[2, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %k = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.limit_choices' op (C2) leaves 1 choices of each of 0 experts}}
    schedule.limit_choices "x" flops 0 bytes 0 %c experts 0 most 1 group 2 to %k : memref<2x3xi32, strided<[3, 1]>> to memref<2x3xi32, strided<[3, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %k = schedule.view %b1 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.limit_choices' op (C2) has groups of 3 of 2 tokens, expected a divisor of these}}
    schedule.limit_choices "x" flops 0 bytes 0 %c experts 4 most 1 group 3 to %k : memref<2x3xi32, strided<[3, 1]>> to memref<2x3xi32, strided<[3, 1]>>
  }
}

// -----

schedule.program @p {
  %b0 = schedule.buffer "a" activations persistent : memref<2048xi8>
  %b1 = schedule.buffer "b" activations persistent : memref<2048xi8>
  schedule.list forward {
    %c = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    %k = schedule.view %b0 at 0 : memref<2048xi8> to memref<2x3xi32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.limit_choices' op (C3) kept and choices share bytes of buffer "a", expected what is written to lie apart}}
    schedule.limit_choices "x" flops 0 bytes 0 %c experts 4 most 1 group 2 to %k : memref<2x3xi32, strided<[3, 1]>> to memref<2x3xi32, strided<[3, 1]>>
  }
}
