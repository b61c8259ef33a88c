// RUN: meshwork-opt %s -codegen-emit-gpu-kernels | FileCheck %s

#rows = #transformer.dims<rows>
#cols = #transformer.dims<cols>
#both = #transformer.dims<rows, cols>
!x = tensor<64x768xbf16, #both>
!i = tensor<i32>

// Kernels that differ in their dropouts' streams are one, which takes the
// stream after the pointers.
// CHECK: gpu.module @kernels
// CHECK: gpu.func @kernel_0(%{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: i32) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME: known_grid_size = array<i32: 32, 1, 1>
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi16>
// CHECK-NOT: gpu.func @kernel_1
func.func @dropouts(%seed: !i, %step: !i, %first: !i, %x: !x) -> (!x, !x) {
  %y = transformer.fused rows #rows cols #cols ins(%seed, %step, %first, %x : !i, !i, !i, !x) -> !x {
  ^bb0(%s: !i, %t: !i, %f: !i, %a: !x):
    %m = transformer.map ins(%a, %s, %t, %f : !x, !i, !i, !i) -> !x {
    ^bb0(%e: f32, %p: i32, %q: i32, %r: i32):
      %d = transformer.dropout_mask %p, %q, %r stream 1 rate 1.0e-1
      %o = arith.mulf %e, %d : f32
      transformer.yield %o : f32
    }
    transformer.yield %m : !x
  }
  %z = transformer.fused rows #rows cols #cols ins(%seed, %step, %first, %y : !i, !i, !i, !x) -> !x {
  ^bb0(%s: !i, %t: !i, %f: !i, %a: !x):
    %m = transformer.map ins(%a, %s, %t, %f : !x, !i, !i, !i) -> !x {
    ^bb0(%e: f32, %p: i32, %q: i32, %r: i32):
      %d = transformer.dropout_mask %p, %q, %r stream 2 rate 1.0e-1
      %o = arith.mulf %e, %d : f32
      transformer.yield %o : f32
    }
    transformer.yield %m : !x
  }
  return %y, %z : !x, !x
}
