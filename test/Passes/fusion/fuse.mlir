// RUN: meshwork-opt %s -split-input-file -transformer-decompose -fusion-accumulations -fusion-fuse | FileCheck %s
// RUN: meshwork-opt %s -split-input-file -transformer-decompose -fusion-accumulations -fusion-fuse=tile-maxima | FileCheck %s --check-prefix=TILES

#se = #transformer.dims<sequence, embed>
#e = #transformer.dims<embed>
!x = tensor<64x32xf32, #se>

// Residual sum and norm are one kernel with two results: the sum is needed again.
// CHECK-LABEL: func.func @residual_norm
func.func @residual_norm(%x: !x, %y: !x, %w: tensor<32xf32, #e>) -> (!x, !x) {
  // CHECK: %[[F:.*]]:2 = transformer.fused rows #{{.*}} cols #{{.*}} ins(
  // CHECK-NOT: transformer.fused
  %h = transformer.add %x, %y : !x, !x -> !x
  %n = transformer.rms_norm %h, %w epsilon 1.0e-6 : !x, tensor<32xf32, #e>
  return %h, %n : !x, !x
}

// -----

#se = #transformer.dims<sequence, embed>
#e = #transformer.dims<embed>

// A sum over rows leaves its kernel as one part per chunk of rows; a second
// kernel adds the chunks to the old state.
// CHECK-LABEL: func.func @column_sum
func.func @column_sum(%x: tensor<64x32xf32, #se>) {
  // CHECK: %[[PARTS:.*]] = transformer.fused rows #{{.*}} cols #{{.*}} -> tensor<32x32xf32, #{{.*}}chunk
  // CHECK: %[[OLD:.*]] = transformer.state
  // CHECK: %[[SUM:.*]] = transformer.fused rows <> cols #{{.*}} ins(%[[PARTS]], %[[OLD]]
  // CHECK: transformer.assign{{ +}}gradient "b", %[[SUM]]
  %g = transformer.reduce add %x over <sequence> : tensor<64x32xf32, #se> -> tensor<32xf32, #e>
  transformer.accumulate gradient "b", %g : tensor<32xf32, #e>
  return
}

// -----

#sf = #transformer.dims<sequence, ffn>

// The activation is computed again from the product that both kernels read.
// CHECK-LABEL: func.func @recomputes
func.func @recomputes(%a: tensor<64x32xf32, #sf>, %w: tensor<32x8xf32, #transformer.dims<ffn, out>>) -> (tensor<64x8xf32, #transformer.dims<sequence, out>>, tensor<64x32xf32, #sf>) {
  // CHECK: %[[G:.*]] = transformer.fused {{.*}} ins(%[[A:.*]] : tensor<64x32xf32
  // CHECK: math.tanh
  // CHECK: %[[Y:.*]] = transformer.contract "sf,fo->so" %[[G]]
  // CHECK: transformer.contract "so,fo->sf"
  // CHECK: transformer.fused {{.*}} tensor<64x32xf32
  // CHECK: math.tanh
  %g = transformer.activate gelu_tanh %a : tensor<64x32xf32, #sf>
  %y = transformer.contract "sf,fo->so" %g, %w : tensor<64x32xf32, #sf>, tensor<32x8xf32, #transformer.dims<ffn, out>> -> tensor<64x8xf32, #transformer.dims<sequence, out>>
  %dg = transformer.contract "so,fo->sf" %y, %w : tensor<64x8xf32, #transformer.dims<sequence, out>>, tensor<32x8xf32, #transformer.dims<ffn, out>> -> tensor<64x32xf32, #sf>
  %h = transformer.activate gelu_tanh %a : tensor<64x32xf32, #sf>
  %z = transformer.mul %dg, %h : tensor<64x32xf32, #sf>, tensor<64x32xf32, #sf> -> tensor<64x32xf32, #sf>
  return %y, %z : tensor<64x8xf32, #transformer.dims<sequence, out>>, tensor<64x32xf32, #sf>
}

// -----

#se = #transformer.dims<sequence, embed>
#es = #transformer.dims<embed, sequence>
!x = tensor<64x32xf32, #se>

// A maximum of everything is found by the kernel that transposes, where it may:
// on a GPU. The scales that the copies read are numbers, and may differ.
// CHECK-LABEL: func.func @maximum
// TILES-LABEL: func.func @maximum
func.func @maximum(%x: !x, %s: tensor<f32>) -> (tensor<32x64xf8E5M2, #es>, tensor<f32>) {
  // CHECK: transformer.fused {{.*}} -> tensor<32xf32, #{{.*}}> {
  // CHECK: transformer.fused {{.*}} -> tensor<32x64xf8E5M2, #embed_sequence> {
  // Rows are the dim that the copy lies along, however few columns are left.
  // TILES: transformer.fused rows #sequence cols #embed {{.*}} -> tensor<32xf32, #{{.*}}>, tensor<32x64xf8E5M2, #embed_sequence> {
  %m = transformer.reduce max %x over <sequence, embed> : !x -> tensor<f32>
  %t = transformer.map ins(%x, %s : !x, tensor<f32>) -> tensor<32x64xf8E5M2, #es> {
  ^bb0(%p: f32, %q: f32):
    %0 = arith.mulf %p, %q : f32
    transformer.yield %0 : f32
  }
  return %t, %m : tensor<32x64xf8E5M2, #es>, tensor<f32>
}

// A copy and a transposed one are one kernel, which walks as the operand lies.
// The norm's sum is not taken there: it is stored, for a kernel of tiles.
// CHECK-LABEL: func.func @transposed
func.func @transposed(%x: !x, %y: tensor<64x32xf32, #se>, %s: tensor<f32>) -> (tensor<32x64xf8E5M2, #es>, tensor<64x32xf8E5M2, #se>, tensor<32x64xf8E5M2, #es>) {
  // CHECK: %[[COPIES:.*]]:2 = transformer.fused rows <> cols #sequence_embed ins(%arg2, %arg0 : {{.*}} -> tensor<32x64xf8E5M2, #embed_sequence>, tensor<64x32xf8E5M2, #sequence_embed> {
  // CHECK-NOT: transformer.reduce
  // CHECK: %[[SUM:.*]] = transformer.fused rows #sequence cols #embed ins(%arg1 : {{.*}} -> tensor<64xf32, #sequence> {
  // CHECK: %[[SCALED:.*]] = transformer.fused rows #sequence cols #embed ins(%[[SUM]], %arg1 : {{.*}} -> tensor<32x64xf8E5M2, #embed_sequence> {
  // CHECK: return %[[COPIES]]#0, %[[COPIES]]#1, %[[SCALED]]
  %t = transformer.map ins(%x, %s : !x, tensor<f32>) -> tensor<32x64xf8E5M2, #es> {
  ^bb0(%p: f32, %q: f32):
    %0 = arith.mulf %p, %q : f32
    transformer.yield %0 : f32
  }
  %c = transformer.map ins(%x, %s : !x, tensor<f32>) -> tensor<64x32xf8E5M2, #se> {
  ^bb0(%p: f32, %q: f32):
    %0 = arith.mulf %p, %q : f32
    transformer.yield %0 : f32
  }
  %sum = transformer.reduce add %y over <embed> : !x -> tensor<64xf32, #transformer.dims<sequence>>
  %u = transformer.map ins(%y, %sum : !x, tensor<64xf32, #transformer.dims<sequence>>) -> tensor<32x64xf8E5M2, #es> {
  ^bb0(%p: f32, %q: f32):
    %0 = arith.mulf %p, %q : f32
    transformer.yield %0 : f32
  }
  return %t, %c, %u : tensor<32x64xf8E5M2, #es>, tensor<64x32xf8E5M2, #se>, tensor<32x64xf8E5M2, #es>
}
