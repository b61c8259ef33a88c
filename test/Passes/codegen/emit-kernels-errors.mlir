// RUN: meshwork-opt %s -codegen-emit-kernels -split-input-file -verify-diagnostics
// RUN: not meshwork-opt %s -codegen-emit-kernels=arch=mips -split-input-file 2>&1 | FileCheck %s
// CHECK: target arch is 'mips', expected native, x86-64-v3 or x86-64-v4

#both = #transformer.dims<rows, cols>
#rows = #transformer.dims<rows>
#cols = #transformer.dims<cols>
func.func @maximum(%x: tensor<4x8xf32, #both>) -> tensor<2x8xf32, #transformer.dims<chunk, cols>> {
  %y = transformer.fused rows #rows cols #cols ins(%x : tensor<4x8xf32, #both>) -> tensor<2x8xf32, #transformer.dims<chunk, cols>> {
  ^bb0(%a: tensor<4x8xf32, #both>):
    // expected-error @+1 {{takes a maximum over rows, expected a sum}}
    %m = transformer.reduce max %a over #rows : tensor<4x8xf32, #both> -> tensor<8xf32, #cols>
    transformer.yield %m : tensor<8xf32, #cols>
  }
  return %y : tensor<2x8xf32, #transformer.dims<chunk, cols>>
}

// -----

#both = #transformer.dims<rows, cols>
func.func @open(%x: tensor<?x8xf32, #both>) -> tensor<?x8xf32, #both> {
  // expected-error @+1 {{expected a static shape without empty dims}}
  %y = transformer.fused rows <rows> cols <cols> ins(%x : tensor<?x8xf32, #both>) -> tensor<?x8xf32, #both> {
  ^bb0(%a: tensor<?x8xf32, #both>):
    transformer.yield %a : tensor<?x8xf32, #both>
  }
  return %y : tensor<?x8xf32, #both>
}
