// RUN: meshwork-opt %s -codegen-emit-gpu-kernels -split-input-file -verify-diagnostics
// RUN: not meshwork-opt %s -codegen-emit-cuda-code=arch=sm_70 -split-input-file 2>&1 | FileCheck %s --check-prefix=ARCH
// ARCH: target arch is 'sm_70', expected sm_80, sm_90a or sm_100

// A grid has fewer than 2^31 blocks: rows that are reduced have one each, or a
// few together.
#both = #transformer.dims<rows, cols>
!wide = tensor<2147483648x65536xf32, #both>
!sums = tensor<2147483648xf32, #transformer.dims<rows>>
func.func @long(%x: !wide) -> !sums {
  // expected-error @+1 {{needs 2147483648 blocks, expected fewer than 2^31 on a GPU}}
  %y = transformer.fused rows <rows> cols <cols> ins(%x : !wide) -> !sums {
  ^bb0(%a: !wide):
    %s = transformer.reduce add %a over <cols> : !wide -> !sums
    transformer.yield %s : !sums
  }
  return %y : !sums
}
