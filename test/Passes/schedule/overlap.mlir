// RUN: meshwork-opt %s -schedule-overlap="mode=always" | FileCheck %s
// RUN: meshwork-opt %s -schedule-overlap="mode=never" | FileCheck %s --check-prefix=NEVER
// RUN: meshwork-opt %s -schedule-overlap | FileCheck %s --check-prefix=NEVER
// RUN: not meshwork-opt %s -schedule-overlap="mode=maybe" 2>&1 | FileCheck %s --check-prefix=MODE

// MODE: mode option: found 'maybe', expected auto, always or never
// Here nothing is large enough to gain time, so `auto` changes nothing.
// NEVER-NOT: channel
// NEVER-NOT: schedule.wait

// A gather of a weight is started under the product before the one that needs
// it. The sum of a gradient is started at once; what adds it up comes later, and
// waits. The sum that @update began with runs in the last backward pass.
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
  schedule.program @rank {
    %part = schedule.buffer "part" weights persistent : memref<2048xi8>
    %whole = schedule.buffer "whole" activations : memref<4096xi8>
    %x = schedule.buffer "x" activations persistent : memref<4096xi8>
    %y = schedule.buffer "y" activations : memref<4096xi8>
    %z = schedule.buffer "z" activations : memref<4096xi8>
    %g = schedule.buffer "g" activations : memref<4096xi8>
    %s = schedule.buffer "s" activations : memref<2048xi8>
    %state = schedule.buffer "state" gradients persistent : memref<2048xi8>
    %norm = schedule.buffer "norm" gradients persistent : memref<64xi8>
    schedule.list once {
    }
    schedule.list step {
    }
    // CHECK: schedule.list{{ +}}backward
    schedule.list backward {
      %x0 = schedule.view %x at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %y0 = schedule.view %y at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      // CHECK: schedule.collective "weight" {{.*}} channel 2 over
      // CHECK: schedule.matmul "first"
      schedule.matmul "first" flops 65536 bytes 12288 no %x0, %x0 to %y0 : memref<1x32x32xf32, strided<[1024, 32, 1]>>, memref<1x32x32xf32, strided<[1024, 32, 1]>> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %p = schedule.view %part at 0 : memref<2048xi8> to memref<16x32xf32, strided<[32, 1]>>
      %w = schedule.view %whole at 0 : memref<4096xi8> to memref<32x32xf32, strided<[32, 1]>>
      schedule.collective "weight" flops 0 bytes 2048 all_gather sum over ["dp"] in forward cause "weight" dims [0] to [0] sources [] (%p) to (%w) : memref<16x32xf32, strided<[32, 1]>> to memref<32x32xf32, strided<[32, 1]>>
      %y1 = schedule.view %y at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %w1 = schedule.view %whole at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %z1 = schedule.view %z at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      // CHECK: schedule.wait "weight" flops 0 bytes 0 2 count 1
      // CHECK: schedule.matmul "second"
      schedule.matmul "second" flops 65536 bytes 12288 no %y1, %w1 to %z1 : memref<1x32x32xf32, strided<[1024, 32, 1]>>, memref<1x32x32xf32, strided<[1024, 32, 1]>> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %z2 = schedule.view %z at 0 : memref<4096xi8> to memref<32x32xf32, strided<[32, 1]>>
      %g2 = schedule.view %g at 0 : memref<4096xi8> to memref<32x32xf32, strided<[32, 1]>>
      schedule.launch "gradient" flops 0 bytes 8192 @k items 1 outputs 1 (%z2, %g2) : memref<32x32xf32, strided<[32, 1]>>, memref<32x32xf32, strided<[32, 1]>>
      %g3 = schedule.view %g at 0 : memref<4096xi8> to memref<32x32xf32, strided<[32, 1]>>
      %s3 = schedule.view %s at 0 : memref<2048xi8> to memref<16x32xf32, strided<[32, 1]>>
      // CHECK: schedule.collective "sum" {{.*}} channel 1 over
      schedule.collective "sum" flops 0 bytes 4096 reduce_scatter sum over ["dp"] in backward cause "gradient" dims [0] to [0] sources [] (%g3) to (%s3) : memref<32x32xf32, strided<[32, 1]>> to memref<16x32xf32, strided<[32, 1]>>
      %s4 = schedule.view %s at 0 : memref<2048xi8> to memref<16x32xf32, strided<[32, 1]>>
      %t4 = schedule.view %state at 0 : memref<2048xi8> to memref<16x32xf32, strided<[32, 1]>>
      schedule.launch "add" flops 0 bytes 4096 @k items 1 outputs 1 (%s4, %t4) : memref<16x32xf32, strided<[32, 1]>>, memref<16x32xf32, strided<[32, 1]>>
      %n5 = schedule.view %norm at 0 : memref<64xi8> to memref<16xf32, strided<[1]>>
      schedule.fill "norm gradients" flops 0 bytes 64 1.0 to %n5 : memref<16xf32, strided<[1]>>
      %x5 = schedule.view %x at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      // CHECK: schedule.collective "norms" {{.*}} channel 1 last_only over
      // CHECK: schedule.matmul "third"
      schedule.matmul "third" flops 9000000000 bytes 12288 no %x5, %x5 to %x5 : memref<1x32x32xf32, strided<[1024, 32, 1]>>, memref<1x32x32xf32, strided<[1024, 32, 1]>> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      // CHECK: schedule.wait "sum" flops 0 bytes 0 1 count 1
      // CHECK: schedule.launch "add"
      // CHECK: schedule.wait "norms" flops 0 bytes 0 1 count 2
    }
    // CHECK: schedule.list{{ +}}update
    // CHECK-NEXT: schedule.view
    // CHECK-NEXT: schedule.fill
    // CHECK-NOT: schedule.collective
    schedule.list update {
      %n = schedule.view %norm at 0 : memref<64xi8> to memref<16xf32, strided<[1]>>
      schedule.collective "norms" flops 0 bytes 64 all_reduce sum over ["dp"] in update cause "norms" dims [0] to [0] sources [] (%n) to (%n) : memref<16xf32, strided<[1]>> to memref<16xf32, strided<[1]>>
      schedule.fill "n" flops 0 bytes 64 1.0 to %n : memref<16xf32, strided<[1]>>
    }
  }
}
