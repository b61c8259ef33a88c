// RUN: meshwork-opt %s -transformer-autodiff | FileCheck %s

#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
#ef = #transformer.dims<embed, out>

// The tied table gets two parts of a gradient, each accumulated at once; what no
// parameter changes gets none.
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME: (%[[TOKENS:.*]]: tensor<2x4xi32, #{{.*}}>, %[[TARGETS:.*]]: tensor
func.func @loss(%tokens: tensor<2x4xi32, #bs>, %targets: tensor<2x4xi32, #bs>) -> tensor<f32> {
  %w = transformer.parameter "table" init <constant, 1.0> : tensor<8x2xf32, #ve>
  // CHECK: %[[X:.*]] = transformer.embedding
  %x = transformer.embedding %w, %tokens : tensor<8x2xf32, #ve>, tensor<2x4xi32, #bs> -> tensor<2x4x2xf32, #bse>
  // CHECK: %[[LOSS:.*]], %[[DX:.*]], %[[DW:.*]] = transformer.head_loss_grad %[[X]]
  // CHECK: transformer.accumulate{{ +}}gradient "table", %[[DW]]
  // CHECK: %[[DT:.*]] = transformer.embedding_grad %[[TOKENS]], %[[DX]]
  // CHECK: transformer.accumulate{{ +}}gradient "table", %[[DT]]
  // CHECK: transformer.accumulate{{ +}}loss "", %[[LOSS]]
  // CHECK-NEXT: return
  %loss = transformer.head_loss %x, %w, %targets scale 1.0 : tensor<2x4x2xf32, #bse>, tensor<8x2xf32, #ve>, tensor<2x4xi32, #bs> -> tensor<f32>
  return %loss : tensor<f32>
}
