// RUN: meshwork-opt %s -schedule-overlap="mode=always" | FileCheck %s

// Nothing is under way where a counted repeat begins: gathers that the product
// behind it needs are waited for in front.
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
  schedule.program @rank {
    %part = schedule.buffer "part" weights persistent : memref<2048xi8>
    %whole = schedule.buffer "whole" activations : memref<4096xi8>
    %again = schedule.buffer "again" activations : memref<4096xi8>
    %x = schedule.buffer "x" activations persistent : memref<4096xi8>
    %n = schedule.buffer "n" activations persistent : memref<64xi8>
    %z = schedule.buffer "z" activations : memref<4096xi8>
    schedule.list once {
    }
    schedule.list step {
    }
    // CHECK: schedule.list{{ +}}forward
    schedule.list forward {
      %p = schedule.view %part at 0 : memref<2048xi8> to memref<16x32xf32, strided<[32, 1]>>
      %w = schedule.view %whole at 0 : memref<4096xi8> to memref<32x32xf32, strided<[32, 1]>>
      // CHECK: schedule.collective "weight" {{.*}} channel 1 over
      // CHECK: schedule.collective "again" {{.*}} channel 1 over
      schedule.collective "weight" flops 0 bytes 2048 all_gather sum over ["dp"] in forward cause "weight" dims [0] to [0] sources [] (%p) to (%w) : memref<16x32xf32, strided<[32, 1]>> to memref<32x32xf32, strided<[32, 1]>>
      // CHECK: schedule.wait "again" flops 0 bytes 0 1 count 2
      // CHECK: schedule.repeat "rounds" flops 0 bytes 0 times 3 counted
      %count = schedule.view %n at 0 : memref<64xi8> to memref<1xi32, strided<[1]>>
      schedule.repeat "rounds" flops 0 bytes 0 times 3 counted %count : memref<1xi32, strided<[1]>> {
        %x0 = schedule.view %x at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
        schedule.fill "x" flops 0 bytes 4096 0.0 to %x0 : memref<1024xf32, strided<[1]>>
      }
      %p1 = schedule.view %part at 0 : memref<2048xi8> to memref<16x32xf32, strided<[32, 1]>>
      %a = schedule.view %again at 0 : memref<4096xi8> to memref<32x32xf32, strided<[32, 1]>>
      schedule.collective "again" flops 0 bytes 2048 all_gather sum over ["dp"] in forward cause "weight" dims [0] to [0] sources [] (%p1) to (%a) : memref<16x32xf32, strided<[32, 1]>> to memref<32x32xf32, strided<[32, 1]>>
      %w1 = schedule.view %whole at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %a1 = schedule.view %again at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %z1 = schedule.view %z at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      // CHECK-NOT: schedule.wait
      // CHECK: schedule.matmul "product"
      schedule.matmul "product" flops 65536 bytes 12288 no %w1, %a1 to %z1 : memref<1x32x32xf32, strided<[1024, 32, 1]>>, memref<1x32x32xf32, strided<[1024, 32, 1]>> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
    }
    schedule.list backward {
    }
    schedule.list update {
    }
    schedule.actions [step, 0F0, 0B0, update]
  }
}
