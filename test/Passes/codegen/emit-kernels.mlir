// RUN: meshwork-opt %s -codegen-emit-kernels=arch=x86-64-v4 | FileCheck %s --check-prefixes=CHECK,V4
// RUN: meshwork-opt %s -codegen-emit-kernels=arch=x86-64-v3 | FileCheck %s --check-prefixes=CHECK,V3

#rows = #transformer.dims<rows>
#cols = #transformer.dims<cols>
#both = #transformer.dims<rows, cols>
!x = tensor<64x768xf32, #both>
!r = tensor<64xf32, #rows>

// A norm: one pass over the row for the sum, one that stores. Four registers a
// step; the value per row is computed once, between the passes.
// CHECK-LABEL: llvm.func @kernel_0(
// CHECK: scf.for
// CHECK:   %[[SUM:.*]] = scf.for
// V4:        llvm.load {{.*}} -> vector<64xf32>
// V3:        llvm.load {{.*}} -> vector<32xf32>
// CHECK-NOT: llvm.store
// CHECK:     scf.yield
// CHECK:   vector.shuffle %[[SUM]]
// CHECK:   math.rsqrt %{{.*}} : f32
// CHECK:   scf.for
// CHECK:     llvm.load
// CHECK:     arith.mulf
// CHECK:     llvm.store
// CHECK-NOT: scf.for
func.func @norm(%x: !x) -> !x {
  %y = transformer.fused rows #rows cols #cols ins(%x : !x) -> !x {
  ^bb0(%a: !x):
    %sq = transformer.map ins(%a : !x) -> !x {
    ^bb0(%p: f32):
      %0 = arith.mulf %p, %p : f32
      transformer.yield %0 : f32
    }
    %s = transformer.reduce add %sq over #cols : !x -> !r
    %n = transformer.map ins(%a, %s : !x, !r) -> !x {
    ^bb0(%p: f32, %q: f32):
      %i = math.rsqrt %q : f32
      %0 = arith.mulf %p, %i : f32
      transformer.yield %0 : f32
    }
    transformer.yield %n : !x
  }
  return %y : !x
}

// Contiguous dims are one loop, cut in blocks of columns; the tail of 3 columns
// is masked.
// CHECK-LABEL: llvm.func @kernel_1(
// CHECK: scf.for
// CHECK:   llvm.store
// CHECK: arith.constant dense<[true, true, true, false
// CHECK: llvm.intr.masked.store
// CHECK-NOT: scf.for
func.func @flat(%x: tensor<3x33xf32, #both>) -> tensor<3x33xf32, #both> {
  %y = transformer.fused rows <> cols #both ins(%x : tensor<3x33xf32, #both>) -> tensor<3x33xf32, #both> {
  ^bb0(%a: tensor<3x33xf32, #both>):
    %n = transformer.map ins(%a : tensor<3x33xf32, #both>) -> tensor<3x33xf32, #both> {
    ^bb0(%p: f32):
      %0 = arith.addf %p, %p : f32
      transformer.yield %0 : f32
    }
    transformer.yield %n : tensor<3x33xf32, #both>
  }
  return %y : tensor<3x33xf32, #both>
}

// A roll by half: two ranges of columns, each with one offset, no loop left.
// CHECK-LABEL: llvm.func @kernel_2(
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: llvm.store {{.*}} : vector<8xf32>
// CHECK: llvm.store {{.*}} : vector<8xf32>
// CHECK-NOT: llvm.store
func.func @rotate(%x: tensor<4x16xf32, #both>) -> tensor<4x16xf32, #both> {
  %y = transformer.fused rows #rows cols #cols ins(%x : tensor<4x16xf32, #both>) -> tensor<4x16xf32, #both> {
  ^bb0(%a: tensor<4x16xf32, #both>):
    %r = transformer.roll %a by 8 : tensor<4x16xf32, #both>
    transformer.yield %r : tensor<4x16xf32, #both>
  }
  return %y : tensor<4x16xf32, #both>
}

// Exponentials that two passes need are kept for the row.
// CHECK-LABEL: llvm.func @kernel_3(
// CHECK: llvm.alloca
// CHECK: math.exp
// CHECK: llvm.store
// CHECK-NOT: math.exp
func.func @softmax(%x: !x) -> !x {
  %y = transformer.fused rows #rows cols #cols ins(%x : !x) -> !x {
  ^bb0(%a: !x):
    %e = transformer.map ins(%a : !x) -> !x {
    ^bb0(%p: f32):
      %0 = math.exp %p : f32
      transformer.yield %0 : f32
    }
    %s = transformer.reduce add %e over #cols : !x -> !r
    %n = transformer.map ins(%e, %s : !x, !r) -> !x {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.divf %p, %q : f32
      transformer.yield %0 : f32
    }
    transformer.yield %n : !x
  }
  return %y : !x
}

// The stream of a dropout is an argument of the function behind the kernel.
// CHECK-LABEL: llvm.func @kernel_4(
// CHECK: %[[STREAM:.*]] = arith.constant 7 : i32
// CHECK: llvm.call @kernel_4.body({{.*}}, %[[STREAM]])
// CHECK: llvm.func internal @kernel_4.body
func.func @drop(%x: !x, %seed: tensor<i32>) -> !x {
  %y = transformer.fused rows <> cols #both ins(%x, %seed : !x, tensor<i32>) -> !x {
  ^bb0(%a: !x, %b: tensor<i32>):
    %n = transformer.map ins(%a, %b : !x, tensor<i32>) -> !x {
    ^bb0(%p: f32, %q: i32):
      %m = transformer.dropout_mask %q, %q, %q stream 7 rate 1.0e-1
      %0 = arith.mulf %p, %m : f32
      transformer.yield %0 : f32
    }
    transformer.yield %n : !x
  }
  return %y : !x
}
