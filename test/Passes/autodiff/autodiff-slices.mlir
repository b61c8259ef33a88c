// RUN: meshwork-opt %s -transformer-autodiff | FileCheck %s

#p = #transformer.dims<pair, embed>
#e = #transformer.dims<embed>

// Gradients of two slices are set side by side, not padded and added.
// CHECK-LABEL: func.func @microbatch
// CHECK: transformer.unslice %{{.*}}, %{{.*}} dim "pair" offsets [0, 1]
// CHECK-NOT: transformer.unslice
func.func @loss() -> tensor<f32> {
  %a = transformer.parameter "a" init <constant, 1.0> : tensor<2x4xf32, #p>
  %b = transformer.map ins(%a : tensor<2x4xf32, #p>) -> tensor<2x4xf32, #p> {
  ^bb0(%x: f32):
    %y = arith.mulf %x, %x : f32
    transformer.yield %y : f32
  }
  %first = transformer.slice %b dim "pair" offset 0 : tensor<2x4xf32, #p> -> tensor<4xf32, #e>
  %second = transformer.slice %b dim "pair" offset 1 : tensor<2x4xf32, #p> -> tensor<4xf32, #e>
  %product = transformer.map ins(%first, %second : tensor<4xf32, #e>, tensor<4xf32, #e>) -> tensor<4xf32, #e> {
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %y : f32
    transformer.yield %z : f32
  }
  %loss = transformer.reduce add %product over #e : tensor<4xf32, #e> -> tensor<f32>
  return %loss : tensor<f32>
}
