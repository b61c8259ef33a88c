// RUN: meshwork-opt %s -codegen-emit-gpu-kernels -split-input-file -verify-diagnostics
// RUN: not meshwork-opt %s -codegen-emit-cuda-code=arch=sm_70 -split-input-file 2>&1 | FileCheck %s --check-prefix=ARCH
// ARCH: target arch is 'sm_70', expected sm_80, sm_90a or sm_100

#both = #transformer.dims<rows, cols>
!wide = tensor<2x65536xf32, #both>
!sums = tensor<2x65536xf32, #transformer.dims<chunk, cols>>
func.func @wide(%x: !wide) -> (!wide, !sums) {
  // expected-error @+1 {{sums rows of 65536 columns that it also reduces, expected no more than a GPU's block holds in registers}}
  %y:2 = transformer.fused rows <rows> cols <cols> ins(%x : !wide) -> !wide, !sums {
  ^bb0(%a: !wide):
    %s = transformer.reduce add %a over <cols> : !wide -> tensor<2xf32, #transformer.dims<rows>>
    %m = transformer.map ins(%a, %s : !wide, tensor<2xf32, #transformer.dims<rows>>) -> !wide {
    ^bb0(%e: f32, %t: f32):
      %0 = arith.mulf %e, %t : f32
      transformer.yield %0 : f32
    }
    %c = transformer.reduce add %m over <rows> : !wide -> tensor<65536xf32, #transformer.dims<cols>>
    transformer.yield %m, %c : !wide, tensor<65536xf32, #transformer.dims<cols>>
  }
  return %y#0, %y#1 : !wide, !sums
}

// -----

!flat = tensor<2147483648xbf16, #transformer.dims<cols>>
func.func @long(%x: !flat) -> !flat {
  // expected-error @+1 {{has 2147483648 columns, expected fewer than 2^31 on a GPU}}
  %y = transformer.fused rows <> cols <cols> ins(%x : !flat) -> !flat {
  ^bb0(%a: !flat):
    %m = transformer.map ins(%a : !flat) -> !flat {
    ^bb0(%e: f32):
      %0 = arith.addf %e, %e : f32
      transformer.yield %0 : f32
    }
    transformer.yield %m : !flat
  }
  return %y : !flat
}
