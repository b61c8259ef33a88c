// RUN: meshwork-opt %s -memory-plan-arena | FileCheck %s

// What is persistent comes first. %a and %c are never alive together and share
// bytes; %b meets both. Offsets are multiples of 64.
// CHECK: schedule.program @rank arena 320
schedule.program @rank {
  // CHECK: schedule.buffer "w" weights persistent at 0 :
  // CHECK: schedule.buffer "a" activations at 64 :
  // CHECK: schedule.buffer "b" activations at 192 :
  // CHECK: schedule.buffer "c" activations at 64 :
  %w = schedule.buffer "w" weights persistent : memref<40xi8>
  %a = schedule.buffer "a" activations : memref<128xi8>
  %b = schedule.buffer "b" activations : memref<128xi8>
  %c = schedule.buffer "c" activations : memref<128xi8>
  schedule.phase "once" {
  }
  schedule.phase "step" {
  }
  schedule.phase "microbatch" {
    %va = schedule.view %a at 0 : memref<128xi8> to memref<32xf32, strided<[1]>>
    %vb = schedule.view %b at 0 : memref<128xi8> to memref<32xf32, strided<[1]>>
    %vc = schedule.view %c at 0 : memref<128xi8> to memref<32xf32, strided<[1]>>
    schedule.fill "1" flops 0 bytes 128 0.0 to %va : memref<32xf32, strided<[1]>>
    schedule.launch "2" flops 0 bytes 256 @k items 1 outputs 1 (%va, %vb) : memref<32xf32, strided<[1]>>, memref<32xf32, strided<[1]>>
    schedule.launch "3" flops 0 bytes 256 @k items 1 outputs 1 (%vb, %vc) : memref<32xf32, strided<[1]>>, memref<32xf32, strided<[1]>>
  }
  schedule.phase "update" {
  }
}
