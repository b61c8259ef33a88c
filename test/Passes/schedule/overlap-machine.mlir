// RUN: meshwork-opt %s -schedule-overlap="machine={name=\"spare\" device=\"cpu\" ranks_per_node=8 flops.f32=1e11 memory.bandwidth=1e10 launch.hand_over=5e-5 link.within_node.latency=2e-5 link.within_node.bandwidth=5e9}" | FileCheck %s
// RUN: meshwork-opt %s -schedule-overlap | FileCheck %s --check-prefix=CORES
// RUN: meshwork-opt %s -schedule-overlap="machine=cuda" | FileCheck %s --check-prefix=CUDA
// RUN: meshwork-opt %s -schedule-overlap="machine=xeon-2" | FileCheck %s --check-prefix=CORES
// RUN: meshwork-opt %s -schedule-overlap="mode=always machine=xeon-2" | FileCheck %s --check-prefix=ALWAYS
// RUN: meshwork-opt %s -schedule-overlap="machine={name=\"own\" device=\"cuda\" ranks_per_node=8 flops.f32=5e14 memory.bandwidth=1e12 launch.hand_over=5e-6 link.between_nodes.latency=1e-6 link.between_nodes.bandwidth=5e10}" | FileCheck %s --check-prefix=CUDA
// RUN: not meshwork-opt %s -schedule-overlap="mode=never machine=tpu" 2>&1 | FileCheck %s --check-prefix=MACHINE

// MACHINE: machine option: found 'tpu', expected a100x8, b200x8, cpu, cuda, h100x8, h200x8, xeon-2, or all keys of a machine file

// Two cores that compute gain nothing by moving data beside it.
// CORES-NOT: channel
// CORES-NOT: schedule.wait
// ALWAYS: schedule.collective "weight" {{.*}} channel 1 over

// A gather of 8 MB before the third product. A CPU that moves data without its cores hides it under the one before;
// a GPU computes a hundred times faster than its link brings, and starts it two
// products earlier.
// CHECK: schedule.matmul "first"
// CHECK: schedule.collective "weight" {{.*}} channel 1 over
// CHECK: schedule.matmul "second"
// CHECK: schedule.wait "weight"
// CHECK: schedule.matmul "third"
// CUDA: schedule.collective "weight" {{.*}} channel 1 over
// CUDA: schedule.matmul "first"
// CUDA: schedule.matmul "second"
// CUDA: schedule.wait "weight"
// CUDA: schedule.matmul "third"
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
  schedule.program @rank {
    %part = schedule.buffer "part" weights persistent : memref<8388608xi8>
    %whole = schedule.buffer "whole" activations : memref<16777216xi8>
    %x = schedule.buffer "x" activations persistent : memref<4096xi8>
    %y = schedule.buffer "y" activations : memref<4096xi8>
    schedule.list once {
    }
    schedule.list step {
    }
    schedule.list backward {
      %x0 = schedule.view %x at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %y0 = schedule.view %y at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      schedule.matmul "first" flops 20000000000 bytes 12288 no %x0, %x0 to %y0 : memref<1x32x32xf32, strided<[1024, 32, 1]>>, memref<1x32x32xf32, strided<[1024, 32, 1]>> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %x1 = schedule.view %x at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %y1 = schedule.view %y at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      schedule.matmul "second" flops 20000000000 bytes 12288 no %x1, %x1 to %y1 : memref<1x32x32xf32, strided<[1024, 32, 1]>>, memref<1x32x32xf32, strided<[1024, 32, 1]>> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %p = schedule.view %part at 0 : memref<8388608xi8> to memref<2048x1024xf32, strided<[1024, 1]>>
      %w = schedule.view %whole at 0 : memref<16777216xi8> to memref<4096x1024xf32, strided<[1024, 1]>>
      schedule.collective "weight" flops 0 bytes 8388608 all_gather sum over ["dp"] in forward cause "weight" dims [0] to [0] sources [] (%p) to (%w) : memref<2048x1024xf32, strided<[1024, 1]>> to memref<4096x1024xf32, strided<[1024, 1]>>
      %x2 = schedule.view %x at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %w2 = schedule.view %whole at 0 : memref<16777216xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %y2 = schedule.view %y at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      schedule.matmul "third" flops 20000000000 bytes 12288 no %x2, %w2 to %y2 : memref<1x32x32xf32, strided<[1024, 32, 1]>>, memref<1x32x32xf32, strided<[1024, 32, 1]>> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
    }
    schedule.list update {
    }
  }
}
