// RUN: meshwork-opt %s -split-input-file -memory-plan-arena -verify-diagnostics

// expected-error @+1 {{has no schedule.actions, which say when lists run}}
schedule.program @nothing {
}

// -----

// Two microbatches are between forward and backward at once.
schedule.program @pipeline {
  // expected-error @+1 {{needs 2 copies, one for each microbatch that is under way at once}}
  %a = schedule.buffer "a" activations : memref<128xi8>
  schedule.list forward {
    %v = schedule.view %a at 0 : memref<128xi8> to memref<32xf32, strided<[1]>>
    schedule.fill "1" flops 0 bytes 128 0.0 to %v : memref<32xf32, strided<[1]>>
  }
  schedule.list backward {
    %v = schedule.view %a at 0 : memref<128xi8> to memref<32xf32, strided<[1]>>
    schedule.launch "2" flops 0 bytes 128 @k items 1 outputs 1 (%v, %v) : memref<32xf32, strided<[1]>>, memref<32xf32, strided<[1]>>
  }
  schedule.actions [0F0, 0F1, 0B0, 0B1]
}
