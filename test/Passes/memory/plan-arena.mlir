// RUN: meshwork-opt %s -split-input-file -memory-plan-arena | FileCheck %s

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
  schedule.list once {
  }
  schedule.list step {
  }
  schedule.list forward {
    %va = schedule.view %a at 0 : memref<128xi8> to memref<32xf32, strided<[1]>>
    %vb = schedule.view %b at 0 : memref<128xi8> to memref<32xf32, strided<[1]>>
    %vc = schedule.view %c at 0 : memref<128xi8> to memref<32xf32, strided<[1]>>
    schedule.fill "1" flops 0 bytes 128 0.0 to %va : memref<32xf32, strided<[1]>>
    schedule.launch "2" flops 0 bytes 256 @k items 1 outputs 1 (%va, %vb) : memref<32xf32, strided<[1]>>, memref<32xf32, strided<[1]>>
    schedule.launch "3" flops 0 bytes 256 @k items 1 outputs 1 (%vb, %vc) : memref<32xf32, strided<[1]>>, memref<32xf32, strided<[1]>>
  }
  schedule.list update {
  }
  schedule.actions [step, 0F0, update]
}

// -----

// A sum over microbatches lives from one to the next, so it shares bytes with
// nothing in them, though it is first written after %a was last read; with one
// microbatch it could.
// CHECK: schedule.program @adds arena 256
// CHECK: schedule.buffer "sum" gradients at 0 :
// CHECK: schedule.buffer "a" activations at 128 :
schedule.program @adds {
  %sum = schedule.buffer "sum" gradients : memref<128xi8>
  %a = schedule.buffer "a" activations : memref<128xi8>
  schedule.list forward {
    %va = schedule.view %a at 0 : memref<128xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
    schedule.launch "1" flops 0 bytes 128 @k items 1 outputs 1 (%va) : memref<1x4x8xf32, strided<[32, 8, 1]>>
    schedule.launch "2" flops 0 bytes 128 @k items 1 outputs 1 (%va, %va) : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
  schedule.list backward {
    %vs = schedule.view %sum at 0 : memref<128xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
    schedule.launch "3" flops 0 bytes 128 @k items 1 outputs 1 (%vs) : memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
  schedule.list update {
    %vs = schedule.view %sum at 0 : memref<128xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
    schedule.launch "4" flops 0 bytes 128 @k items 1 outputs 1 (%vs, %vs) : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
  schedule.actions [0F0, 0B0, 0F1, 0B1, update]
}

// -----

// CHECK: schedule.program @once arena 128
schedule.program @once {
  %sum = schedule.buffer "sum" gradients : memref<128xi8>
  %a = schedule.buffer "a" activations : memref<128xi8>
  schedule.list forward {
    %va = schedule.view %a at 0 : memref<128xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
    schedule.launch "1" flops 0 bytes 128 @k items 1 outputs 1 (%va) : memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
  schedule.list backward {
    %vs = schedule.view %sum at 0 : memref<128xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
    schedule.launch "3" flops 0 bytes 128 @k items 1 outputs 1 (%vs) : memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
  schedule.list update {
    %vs = schedule.view %sum at 0 : memref<128xi8> to memref<1x4x8xf32, strided<[32, 8, 1]>>
    schedule.launch "4" flops 0 bytes 128 @k items 1 outputs 1 (%vs, %vs) : memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x4x8xf32, strided<[32, 8, 1]>>
  }
  schedule.actions [0F0, 0B0, update]
}

// -----

// Two microbatches are between forward and backward at once: a copy for each,
// one behind the other.
// CHECK: schedule.program @pipeline arena 320
schedule.program @pipeline {
  // CHECK: schedule.buffer "b" activations at 256 :
  // CHECK: schedule.buffer "a" activations at 0 copies 2 : memref<256xi8>
  %b = schedule.buffer "b" activations : memref<40xi8>
  %a = schedule.buffer "a" activations : memref<100xi8>
  schedule.list forward {
    %w = schedule.view %b at 0 : memref<40xi8> to memref<10xf32, strided<[1]>>
    schedule.fill "0" flops 0 bytes 40 0.0 to %w : memref<10xf32, strided<[1]>>
    %v = schedule.view %a at 0 : memref<100xi8> to memref<25xf32, strided<[1]>>
    schedule.fill "1" flops 0 bytes 128 0.0 to %v : memref<25xf32, strided<[1]>>
  }
  schedule.list backward {
    %v = schedule.view %a at 0 : memref<100xi8> to memref<25xf32, strided<[1]>>
    schedule.launch "2" flops 0 bytes 128 @k items 1 outputs 1 (%v, %v) : memref<25xf32, strided<[1]>>, memref<25xf32, strided<[1]>>
  }
  schedule.actions [0F0, 0F1, 0B0, 0B1]
}

// -----

// What lies in the host's memory has an arena of its own, placed alike.
// CHECK: schedule.program @host arena 64 on_host 192
schedule.program @host {
  // CHECK: schedule.buffer "m" optimizer persistent on_host at 0 :
  // CHECK: schedule.buffer "a" workspace at 0 :
  // CHECK: schedule.buffer "kept" activations on_host at 64 :
  // CHECK: schedule.buffer "later" activations on_host at 64 :
  // CHECK: schedule.buffer "both" activations on_host at 128 :
  %m = schedule.buffer "m" optimizer persistent on_host : memref<40xi8>
  %a = schedule.buffer "a" workspace : memref<40xi8>
  %kept = schedule.buffer "kept" activations on_host : memref<40xi8>
  %later = schedule.buffer "later" activations on_host : memref<40xi8>
  %both = schedule.buffer "both" activations on_host : memref<40xi8>
  schedule.list update {
    %va = schedule.view %a at 0 : memref<40xi8> to memref<10xf32, strided<[1]>>
    %vk = schedule.view %kept at 0 : memref<40xi8> to memref<10xf32, strided<[1]>>
    %vl = schedule.view %later at 0 : memref<40xi8> to memref<10xf32, strided<[1]>>
    %vb = schedule.view %both at 0 : memref<40xi8> to memref<10xf32, strided<[1]>>
    schedule.fill "1" flops 0 bytes 40 0.0 to %va : memref<10xf32, strided<[1]>>
    schedule.copy "2" flops 0 bytes 80 %va to %vk : memref<10xf32, strided<[1]>> to memref<10xf32, strided<[1]>>
    schedule.copy "3" flops 0 bytes 80 %va to %vb : memref<10xf32, strided<[1]>> to memref<10xf32, strided<[1]>>
    schedule.copy "4" flops 0 bytes 80 %vk to %va : memref<10xf32, strided<[1]>> to memref<10xf32, strided<[1]>>
    schedule.copy "5" flops 0 bytes 80 %va to %vl : memref<10xf32, strided<[1]>> to memref<10xf32, strided<[1]>>
    schedule.copy "6" flops 0 bytes 80 %vb to %va : memref<10xf32, strided<[1]>> to memref<10xf32, strided<[1]>>
    schedule.copy "7" flops 0 bytes 80 %vl to %va : memref<10xf32, strided<[1]>> to memref<10xf32, strided<[1]>>
  }
  schedule.actions [update]
}
