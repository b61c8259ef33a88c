// RUN: meshwork-opt %s -codegen-emit-gpu-kernels | FileCheck %s
// RUN: meshwork-opt %s -codegen-emit-cuda-code=arch=sm_90a -o /dev/null | FileCheck %s --check-prefix=PTX

// Instructions that are no clusters call device functions: pointers, then constants.
// CHECK: gpu.module @library_kernels
// CHECK: llvm.func @meshwork_fill(!llvm.ptr, i64, i64, i64, i64, i64, i64)
// CHECK: gpu.func @embedding_0(%{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %[[ADDS:.*]]: i32, %[[WORK:.*]]: !llvm.ptr<1>) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME: known_grid_size = array<i32: 4, 1, 1>
// CHECK: llvm.mlir.zero : !llvm.ptr
// CHECK: llvm.call @meshwork_embedding(
// A table that is a shard has a first row; the flag is the launch's.
// CHECK: gpu.func @embedding_grad_0(%{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %[[ADDS:.*]]: i32, %{{.*}}: !llvm.ptr<1>) kernel
// CHECK-SAME: nvvm.minctasm = 2
// CHECK: llvm.call @meshwork_embedding_grad({{.*}}, %[[ADDS]],
// CHECK: gpu.func @copy_block_0
// Equal sizes are one kernel, other values another; rows may lie apart.
// CHECK: gpu.func @fill_0
// CHECK: gpu.func @fill_1
// CHECK: gpu.func @fill_2
// CHECK-NOT: gpu.func @fill_3
// A warp for each row.
// CHECK: gpu.func @top_k_0
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
// CHECK-SAME: known_grid_size = array<i32: 32, 1, 1>
// CHECK: llvm.call @meshwork_top_k(

// Sizes are constants and bits of a type fold: 16 bytes an access, no loop, no call.
// PTX-NOT: .func
// PTX-LABEL: .entry embedding_0(
// PTX: .maxntid 256, 1, 1
// PTX: ld.global.v4.b32
// PTX-NOT: ld.global
// PTX: st.global.v4.b32
// PTX-NOT: st.global
// PTX: ret;
// Sums take no atomics; eight rows are loaded before the first is added.
// PTX-LABEL: .entry embedding_grad_0(
// PTX: .minnctapersm 2
// PTX-NOT: atom
// PTX: vote.sync.ballot.b32
// PTX-NOT: atom
// PTX: bar.sync
// PTX-COUNT-8: ld.global.v4.b32
// PTX: add.rn.f32
// PTX-NOT: atom
// PTX-LABEL: .entry copy_block_0(
// PTX: ld.global.v4.b32
// PTX: st.global.v4.b32
// PTX-LABEL: .entry fill_0(
// PTX: st.global.v4.b32 {{.*}}, {1077952576, 1077952576, 1077952576, 1077952576}
// PTX-LABEL: .entry fill_2(
// PTX: st.global.b16
// PTX-NOT: .entry fill_3
// PTX-LABEL: .entry top_k_0(
// PTX: shfl.sync.bfly.b32
// PTX: st.global.b32
schedule.program @rank arena 65536 {
  %0 = schedule.buffer "table" weights persistent at 0 : memref<16384xi8>
  %1 = schedule.buffer "ids" input persistent at 16384 : memref<512xi8>
  %2 = schedule.buffer "rows" activations persistent at 17408 : memref<16384xi8>
  %3 = schedule.buffer "first" input persistent at 34048 : memref<4xi8>
  %4 = schedule.buffer "block" activations persistent at 34112 : memref<8192xi8>
  %5 = schedule.buffer "choices" activations persistent at 42304 : memref<1024xi8>
  schedule.list forward {
    %table = schedule.view %0 at 0 : memref<16384xi8> to memref<128x64xbf16, strided<[64, 1]>>
    %ids = schedule.view %1 at 0 : memref<512xi8> to memref<4x32xi32, strided<[32, 1]>>
    %rows = schedule.view %2 at 0 : memref<16384xi8> to memref<4x32x64xbf16, strided<[2048, 64, 1]>>
    %first = schedule.view %3 at 0 : memref<4xi8> to memref<i32, strided<[]>>
    %block = schedule.view %4 at 0 : memref<8192xi8> to memref<4x16x64xbf16, strided<[1024, 64, 1]>>
    schedule.embedding "wte" flops 0 bytes 0 %table, %ids to %rows : memref<128x64xbf16, strided<[64, 1]>>, memref<4x32xi32, strided<[32, 1]>> to memref<4x32x64xbf16, strided<[2048, 64, 1]>>
    schedule.embedding_grad "wte" flops 0 bytes 0 after_first %ids, %rows from %first : memref<i32, strided<[]>> to %table : memref<4x32xi32, strided<[32, 1]>>, memref<4x32x64xbf16, strided<[2048, 64, 1]>> to memref<128x64xbf16, strided<[64, 1]>>
    schedule.copy_block "part" flops 0 bytes 0 dim 1 %rows from %first to %block : memref<4x32x64xbf16, strided<[2048, 64, 1]>> from memref<i32, strided<[]>> to memref<4x16x64xbf16, strided<[1024, 64, 1]>>
    schedule.fill "three" flops 0 bytes 0 3.0 to %table : memref<128x64xbf16, strided<[64, 1]>>
    schedule.fill "three again" flops 0 bytes 0 3.0 to %rows : memref<4x32x64xbf16, strided<[2048, 64, 1]>>
    schedule.fill "four" flops 0 bytes 0 4.0 to %table : memref<128x64xbf16, strided<[64, 1]>>
    %ends = schedule.view %0 at 120 : memref<16384xi8> to memref<128x4xbf16, strided<[64, 1]>>
    %scores = schedule.view %2 at 0 : memref<16384xi8> to memref<4x32x32xf32, strided<[1024, 32, 1]>>
    %choices = schedule.view %5 at 0 : memref<1024xi8> to memref<4x32x2xi32, strided<[64, 2, 1]>>
    schedule.fill "ends of rows" flops 0 bytes 0 4.0 to %ends : memref<128x4xbf16, strided<[64, 1]>>
    schedule.top_k "choices" flops 0 bytes 0 %scores groups 8 kept 4 by two_best to %choices : memref<4x32x32xf32, strided<[1024, 32, 1]>> to memref<4x32x2xi32, strided<[64, 2, 1]>>
  }
}
