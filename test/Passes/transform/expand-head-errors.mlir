// RUN: meshwork-opt %s -transformer-expand-head -verify-diagnostics

#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>

func.func @head(%h: tensor<16x4xf32, #se>, %w: tensor<32x4xf32, #ve>, %t: tensor<16xi32, #transformer.dims<sequence>>) -> tensor<32x4xf32, #ve> {
  // expected-error@+1 {{has a weight that is not a parameter itself}}
  %loss, %dh, %dw = transformer.head_loss_grad %h, %w, %t scale 1.0 : tensor<16x4xf32, #se>, tensor<32x4xf32, #ve>, tensor<16xi32, #transformer.dims<sequence>>
      -> tensor<f32>, tensor<16x4xf32, #se>, tensor<32x4xf32, #ve>
  return %dw : tensor<32x4xf32, #ve>
}
