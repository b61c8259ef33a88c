// RUN: meshwork-opt %s -codegen-emit-cuda-code=arch=sm_80 -o /dev/null | FileCheck %s

#both = #transformer.dims<rows, cols>
!x = tensor<64x768xbf16, #both>

// Rows of the operand are 770 elements apart, so vectors of it lie at multiples of
// 4 bytes; the result's lie at multiples of 16.
// CHECK-LABEL: .entry kernel_0(
// CHECK-COUNT-4: ld.global.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
func.func private @kernel_0(%x: !x) -> !x attributes {schedule.strides = [array<i64: 770, 1>, array<i64: 768, 1>]} {
  %y = transformer.fused rows <rows> cols <cols> ins(%x : !x) -> !x {
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

// The columns of this one lie apart: elements one by one.
// CHECK-LABEL: .entry kernel_1(
// CHECK-COUNT-8: ld.global.b16
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
func.func private @kernel_1(%x: !x) -> !x attributes {schedule.strides = [array<i64: 1, 64>, array<i64: 768, 1>]} {
  %y = transformer.fused rows <rows> cols <cols> ins(%x : !x) -> !x {
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
