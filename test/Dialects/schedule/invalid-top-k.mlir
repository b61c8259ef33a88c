// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @p {
  %b0 = schedule.buffer "scores" activations persistent : memref<512xi8>
  %b1 = schedule.buffer "choices" activations persistent : memref<512xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<512xi8> to memref<2x8xf32, strided<[8, 1]>>
    %c = schedule.view %b1 at 0 : memref<512xi8> to memref<2x3xf32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.top_k' op (C1) chooses f32[2,3] from f32[2,8], expected i32[rows...,k] from f32[rows...,experts]}}
    schedule.top_k "x" flops 0 bytes 0 %s to %c : memref<2x8xf32, strided<[8, 1]>> to memref<2x3xf32, strided<[3, 1]>>
  }
}

// -----
schedule.program @p {
  %b0 = schedule.buffer "scores" activations persistent : memref<512xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<512xi8> to memref<2x8xf32, strided<[8, 1]>>
    %c = schedule.view %b0 at 256 : memref<512xi8> to memref<2x3xi32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.top_k' op (C1) scores and choices share buffer "scores"}}
    schedule.top_k "x" flops 0 bytes 0 %s to %c : memref<2x8xf32, strided<[8, 1]>> to memref<2x3xi32, strided<[3, 1]>>
  }
}

// -----
schedule.program @p {
  %b0 = schedule.buffer "scores" activations persistent : memref<512xi8>
  %b1 = schedule.buffer "choices" activations persistent : memref<512xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<512xi8> to memref<2x8xf32, strided<[8, 1]>>
    %c = schedule.view %b1 at 0 : memref<512xi8> to memref<2x3xi32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.top_k' op (C2) has 3 groups of 8 experts, expected a divisor of these}}
    schedule.top_k "x" flops 0 bytes 0 %s groups 3 kept 1 by maximum to %c : memref<2x8xf32, strided<[8, 1]>> to memref<2x3xi32, strided<[3, 1]>>
  }
}

// -----
schedule.program @p {
  %b0 = schedule.buffer "scores" activations persistent : memref<512xi8>
  %b1 = schedule.buffer "choices" activations persistent : memref<512xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<512xi8> to memref<2x8xf32, strided<[8, 1]>>
    %c = schedule.view %b1 at 0 : memref<512xi8> to memref<2x3xi32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.top_k' op (C3) makes 3 choices, expected 1 to 2}}
    schedule.top_k "x" flops 0 bytes 0 %s groups 4 kept 1 by two_best to %c : memref<2x8xf32, strided<[8, 1]>> to memref<2x3xi32, strided<[3, 1]>>
  }
}

// -----
schedule.program @p {
  %b0 = schedule.buffer "scores" activations persistent : memref<512xi8>
  %b1 = schedule.buffer "choices" activations persistent : memref<512xi8>
  schedule.list forward {
    %s = schedule.view %b0 at 0 : memref<512xi8> to memref<2x8xf32, strided<[8, 1]>>
    %v = schedule.view %b0 at 256 : memref<512xi8> to memref<2xi32, strided<[1]>>
    %c = schedule.view %b1 at 0 : memref<512xi8> to memref<2x3xi32, strided<[3, 1]>>
    // expected-error@+1 {{'schedule.top_k' op (C4) valid is i32[2], expected f32[2]}}
    schedule.top_k "x" flops 0 bytes 0 %s valid %v : memref<2xi32, strided<[1]>> to %c : memref<2x8xf32, strided<[8, 1]>> to memref<2x3xi32, strided<[3, 1]>>
  }
}
