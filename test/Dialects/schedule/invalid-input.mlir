// What inputs refuse.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<2x8xf32, strided<[8, 1]>>
  // expected-error@+1 {{'schedule.input' op (C1) tokens is f32[2,8], expected i32 of 2 dims}}
  schedule.input tokens %v : memref<2x8xf32, strided<[8, 1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<2x4xi32, strided<[8, 1]>>
  // expected-error@+1 {{'schedule.input' op (C1) documents is not contiguous}}
  schedule.input documents %v : memref<2x4xi32, strided<[8, 1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<2x8xi32, strided<[8, 1]>>
  // expected-error@+1 {{'schedule.input' op (C1) positions is i32[2,8], expected i32 of 1 dim}}
  schedule.input positions %v over {"cp"} of 16 : memref<2x8xi32, strided<[8, 1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<4xi32, strided<[1]>>
  // expected-error@+1 {{'schedule.input' op (C1) random is i32[4], expected i32[3]}}
  schedule.input random %v : memref<4xi32, strided<[1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<2xi32, strided<[1]>>
  // expected-error@+1 {{'schedule.input' op (C1) extent is i32[2], expected one i32}}
  schedule.input extent %v over {"tp"} of 16 : memref<2xi32, strided<[1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<i32, strided<[]>>
  // expected-error@+1 {{'schedule.input' op (C1) learning_rate is i32[], expected one f32}}
  schedule.input learning_rate %v : memref<i32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  // expected-error@+1 {{'schedule.input' op (C1) has what is no schedule.view}}
  schedule.input tokens %b : memref<64xi8>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<i32, strided<[]>>
  // expected-error@+1 {{'schedule.input' op (C2) coordinate has the size 0, expected a positive number}}
  schedule.input coordinate %v over {"tp"} of 0 : memref<i32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<i32, strided<[]>>
  // expected-error@+1 {{'schedule.input' op (C2) coordinate has the size 0}}
  schedule.input coordinate %v : memref<i32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<2x8xi32, strided<[8, 1]>>
  // expected-error@+1 {{'schedule.input' op (C2) tokens has axes, a size or a hop, which only a coordinate, extent or positions have}}
  schedule.input tokens %v over {"cp"} of 16 : memref<2x8xi32, strided<[8, 1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<f32, strided<[]>>
  // expected-error@+1 {{'schedule.input' op (C2) learning_rate has axes, a size or a hop}}
  schedule.input learning_rate %v over {"cp"} of 0 : memref<f32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<i32, strided<[]>>
  // expected-error@+1 {{'schedule.input' op (C3) extent is of parts with layouts, expected blocks}}
  schedule.input extent %v over {"cp" zigzag} of 16 : memref<i32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<f32, strided<[]>>
  // expected-error@+1 {{'schedule.input' op (C4) learning_rate has the base 0.5, expected none}}
  schedule.input learning_rate %v base 0.5 : memref<f32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<f32, strided<[]>>
  // expected-error@+1 {{'schedule.input' op (C4) bias_correction has the base 1, expected one from 0 to below 1}}
  schedule.input bias_correction %v base 1.0 : memref<f32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<f32, strided<[]>>
  // expected-error@+1 {{'schedule.input' op (C4) bias_correction has no base}}
  schedule.input bias_correction %v : memref<f32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<i32, strided<[]>>
  // expected-error@+1 {{'schedule.input' op (C2) extent has the hop 1, expected none}}
  schedule.input extent %v over {"cp"} of 16 hop 1 : memref<i32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<4xi32, strided<[1]>>
  // expected-error@+1 {{'schedule.input' op (C1) document_positions is i32[4], expected i32 of 2 dims}}
  schedule.input document_positions %v : memref<4xi32, strided<[1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" input persistent : memref<64xi8>
  %v = schedule.view %b at 0 : memref<64xi8> to memref<4xi32, strided<[1]>>
  // expected-error@+1 {{'schedule.input' op (C1) target_counts is i32[4], expected f32 of 1 dim}}
  schedule.input target_counts %v : memref<4xi32, strided<[1]>>
}
