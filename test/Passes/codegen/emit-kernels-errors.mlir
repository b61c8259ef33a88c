// RUN: meshwork-opt %s -codegen-emit-kernels -split-input-file -verify-diagnostics
// RUN: not meshwork-opt %s -codegen-emit-kernels=arch=mips -split-input-file 2>&1 | FileCheck %s
// CHECK: target arch is 'mips', expected native, x86-64-v3 or x86-64-v4

#both = #transformer.dims<rows, cols>
func.func @open(%x: tensor<?x8xf32, #both>) -> tensor<?x8xf32, #both> {
  // expected-error @+1 {{expected a static shape without empty dims}}
  %y = transformer.fused rows <rows> cols <cols> ins(%x : tensor<?x8xf32, #both>) -> tensor<?x8xf32, #both> {
  ^bb0(%a: tensor<?x8xf32, #both>):
    transformer.yield %a : tensor<?x8xf32, #both>
  }
  return %y : tensor<?x8xf32, #both>
}
