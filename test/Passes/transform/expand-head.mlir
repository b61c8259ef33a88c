// RUN: meshwork-opt %s -transformer-expand-head="chunk=8" | FileCheck %s
// RUN: meshwork-opt %s -transformer-expand-head="chunk=64" | FileCheck %s --check-prefix=WHOLE

#bse = #transformer.dims<batch, sequence, embed>
#bs = #transformer.dims<batch, sequence>
#ve = #transformer.dims<vocab, embed>

// Logits exist for 8 tokens at a time: half of a sequence. Each chunk adds its
// part of the weight's gradient.
// CHECK-LABEL: func.func @head
// CHECK-COUNT-4: transformer.contract "abz,vz->abv" {{.*}} -> tensor<1x8x32xf32
// CHECK-NOT: "abz,vz->abv"
// WHOLE-LABEL: func.func @head
// WHOLE: transformer.contract "abz,vz->abv" {{.*}} -> tensor<2x16x32xf32
// WHOLE: transformer.reduce{{ +}}max
// WHOLE: transformer.contract "abv,vz->abz"
// WHOLE: %[[DW:.*]] = transformer.contract "abv,abz->vz"
// WHOLE: transformer.accumulate{{ +}}gradient "head", %[[DW]]
// WHOLE-NOT: head_loss_grad
func.func @head(%h: tensor<2x16x4xf32, #bse>, %t: tensor<2x16xi32, #bs>) -> tensor<2x16x4xf32, #bse> {
  %w = transformer.parameter "head" init <constant, 1.0> : tensor<32x4xf32, #ve>
  %loss, %dh, %dw = transformer.head_loss_grad %h, %w, %t scale 1.0 : tensor<2x16x4xf32, #bse>, tensor<32x4xf32, #ve>, tensor<2x16xi32, #bs>
      -> tensor<f32>, tensor<2x16x4xf32, #bse>, tensor<32x4xf32, #ve>
  transformer.accumulate gradient "head", %dw : tensor<32x4xf32, #ve>
  transformer.accumulate loss "", %loss : tensor<f32>
  return %dh : tensor<2x16x4xf32, #bse>
}
