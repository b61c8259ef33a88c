// What is marked constant passes no gradient, and loses the mark.
// RUN: meshwork-opt %s -transformer-autodiff | FileCheck %s

#e = #transformer.dims<embed>
#s = #transformer.dims<sequence>
// The gradient of s - c, with c the constant s, is that of s alone.
// CHECK-LABEL: func.func @microbatch
// CHECK-NOT: transformer.constant
// CHECK: transformer.accumulate{{ +}}gradient "s"
// CHECK-NOT: accumulate{{ +}}gradient
// CHECK: transformer.accumulate{{ +}}loss
func.func @loss(%tokens: tensor<2xi32, #s>, %targets: tensor<2xi32, #s>) -> tensor<f32> {
  %s = transformer.parameter "s" init <constant, 1.0> : tensor<4xf32, #e>
  %c = transformer.map ins(%s : tensor<4xf32, #e>) {transformer.constant} -> tensor<4xf32, #e> {
  ^bb0(%x: f32):
    transformer.yield %x : f32
  }
  %d = transformer.map ins(%s, %c : tensor<4xf32, #e>, tensor<4xf32, #e>) -> tensor<4xf32, #e> {
  ^bb0(%x: f32, %y: f32):
    %z = arith.subf %x, %y : f32
    transformer.yield %z : f32
  }
  %l = transformer.reduce add %d over <embed> : tensor<4xf32, #e> -> tensor<f32>
  return %l : tensor<f32>
}
