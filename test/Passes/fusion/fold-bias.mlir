// RUN: meshwork-opt %s -fusion-fold-bias | FileCheck %s

#se = #transformer.dims<sequence, embed>
#ef = #transformer.dims<embed, ffn>
#sf = #transformer.dims<sequence, ffn>
#f = #transformer.dims<ffn>

// CHECK-LABEL: func.func @folds
func.func @folds(%x: tensor<4x8xf32, #se>, %w: tensor<8x16xf32, #ef>, %b: tensor<16xf32, #f>) -> tensor<4x16xf32, #sf> {
  // CHECK: transformer.contract "se,ef->sf" %{{.*}}, %{{.*}} bias %{{.*}} :
  // CHECK-NOT: transformer.map
  %y = transformer.contract "se,ef->sf" %x, %w : tensor<4x8xf32, #se>, tensor<8x16xf32, #ef> -> tensor<4x16xf32, #sf>
  %z = transformer.map ins(%y, %b : tensor<4x16xf32, #sf>, tensor<16xf32, #f>) -> tensor<4x16xf32, #sf> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    transformer.yield %s : f32
  }
  return %z : tensor<4x16xf32, #sf>
}

// The product is needed without its bias too.
// CHECK-LABEL: func.func @needed
func.func @needed(%x: tensor<4x8xf32, #se>, %w: tensor<8x16xf32, #ef>, %b: tensor<16xf32, #f>) -> (tensor<4x16xf32, #sf>, tensor<4x16xf32, #sf>) {
  // CHECK-NOT: bias
  // CHECK: transformer.map
  %y = transformer.contract "se,ef->sf" %x, %w : tensor<4x8xf32, #se>, tensor<8x16xf32, #ef> -> tensor<4x16xf32, #sf>
  %z = transformer.map ins(%y, %b : tensor<4x16xf32, #sf>, tensor<16xf32, #f>) -> tensor<4x16xf32, #sf> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    transformer.yield %s : f32
  }
  return %y, %z : tensor<4x16xf32, #sf>, tensor<4x16xf32, #sf>
}
