// RUN: meshwork-opt %s -split-input-file -transformer-autodiff | FileCheck %s

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

// -----
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>

// Of the tied table's two parts only that of the lookup leaves the padding out.
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME: (%[[TOKENS:.*]]: tensor<2x4xi32, #{{.*}}>, %[[TARGETS:.*]]: tensor
func.func @loss(%tokens: tensor<2x4xi32, #bs>, %targets: tensor<2x4xi32, #bs>) -> tensor<f32> {
  %w = transformer.parameter "table" init <constant, 1.0> : tensor<8x2xf32, #ve>
  %x = transformer.embedding %w, %tokens padding 5 : tensor<8x2xf32, #ve>, tensor<2x4xi32, #bs> -> tensor<2x4x2xf32, #bse>
  // CHECK: %{{.*}}, %[[DX:.*]], %[[DW:.*]] = transformer.head_loss_grad
  // CHECK: transformer.accumulate{{ +}}gradient "table", %[[DW]]
  // CHECK: %[[REST:.*]] = transformer.map ins(%[[DX]], %[[TOKENS]]
  // CHECK-NEXT: ^bb0(%[[G:.*]]: f32, %[[ID:.*]]: i32):
  // CHECK: %[[PADDING:.*]] = arith.constant 5 : i32
  // CHECK: %[[IS:.*]] = arith.cmpi eq, %[[ID]], %[[PADDING]]
  // CHECK: %[[ZERO:.*]] = arith.constant 0.0
  // CHECK: arith.select %[[IS]], %[[ZERO]], %[[G]]
  // CHECK: transformer.embedding_grad %[[TOKENS]], %[[REST]]
  %loss = transformer.head_loss %x, %w, %targets scale 1.0 : tensor<2x4x2xf32, #bse>, tensor<8x2xf32, #ve>, tensor<2x4xi32, #bs> -> tensor<f32>
  return %loss : tensor<f32>
}
