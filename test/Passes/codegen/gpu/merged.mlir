// RUN: meshwork-opt %s -codegen-emit-gpu-kernels | FileCheck %s
// RUN: meshwork-opt %s -codegen-emit-cuda-code=arch=sm_80 -o /dev/null | FileCheck %s --check-prefix=PTX

#both = #transformer.dims<rows, cols>
!x = tensor<2048xf32, #transformer.dims<e>>
!y = tensor<8x4096xf32, #both>
!s = tensor<8xf32, #transformer.dims<rows>>

// Sums along 8 rows, a block of 128 threads each, and two updates of 2 blocks of
// 256: a block searches its part among 12. Equal parts share their code. Half of
// the threads have no part in a sum; the others meet among themselves, once: no
// operand has a value a row that the sum could overwrite.
// CHECK: llvm.mlir.global internal @shared_merged() {{.*}} : !llvm.array<4 x f32>
// CHECK: gpu.func @merged(%[[Y:[a-z0-9]+]]: !llvm.ptr<1>, %[[A:[a-z0-9]+]]: !llvm.ptr<1>, %[[B:[a-z0-9]+]]: !llvm.ptr<1>, %[[S:[a-z0-9]+]]: !llvm.ptr<1>, %[[A2:[a-z0-9]+]]: !llvm.ptr<1>, %[[B2:[a-z0-9]+]]: !llvm.ptr<1>) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME: known_grid_size = array<i32: 12, 1, 1>
// CHECK: %[[BLOCK:.*]] = arith.index_cast
// CHECK: %[[FIRST:.*]] = arith.constant 8 : i32
// CHECK: arith.cmpi slt, %[[BLOCK]], %[[FIRST]]
// CHECK: cf.cond_br
// CHECK: cf.br ^[[ROWS:.*]](%[[Y]], %[[S]], %{{.*}} :
// CHECK: cf.br ^[[UPDATE:.*]](%[[A]], %[[A2]], %{{.*}} :
// CHECK: cf.br ^[[UPDATE]](%[[B]], %[[B2]], %{{.*}} :
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// What is only a part of others has no kernel of its own.
// CHECK-NOT: gpu.func

// PTX-NOT: .entry
// PTX: .entry merged(
// PTX: .maxntid 256
// PTX: bar.sync 0, 128;
// PTX-NOT: {{bar.sync|.entry}}
func.func private @rows(%y: !y) -> !s attributes {schedule.strides = [array<i64: 4096, 1>, array<i64: 1>]} {
  %s = transformer.fused rows <rows> cols <cols> ins(%y : !y) -> !s {
  ^bb0(%a: !y):
    %z = transformer.reduce add %a over <cols> : !y -> !s
    transformer.yield %z : !s
  }
  return %s : !s
}
func.func private @update(%x: !x) -> !x attributes {schedule.strides = [array<i64: 1>, array<i64: 1>]} {
  %y = transformer.fused rows <> cols <e> ins(%x : !x) -> !x {
  ^bb0(%a: !x):
    %z = transformer.map ins(%a : !x) -> !x {
    ^bb0(%e: f32):
      %0 = arith.addf %e, %e : f32
      transformer.yield %0 : f32
    }
    transformer.yield %z : !x
  }
  return %y : !x
}
func.func private @merged(%y: !y, %a: !x, %b: !x) -> (!s, !x, !x) {
  %0 = call @rows(%y) : (!y) -> !s
  %1 = call @update(%a) : (!x) -> !x
  %2 = call @update(%b) : (!x) -> !x
  return %0, %1, %2 : !s, !x, !x
}
