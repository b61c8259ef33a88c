// RUN: meshwork-opt %s -split-input-file -transformer-expand-head="chunk=8" | FileCheck %s
// RUN: meshwork-opt %s -split-input-file -transformer-expand-head="chunk=3" | FileCheck %s --check-prefix=SUM
// RUN: meshwork-opt %s -split-input-file -transformer-expand-head="chunk=1" | FileCheck %s --check-prefix=TURNS
// RUN: meshwork-opt %s -split-input-file -transformer-expand-head="chunk=64" | FileCheck %s --check-prefix=WHOLE
// RUN: meshwork-opt %s -split-input-file -transformer-expand-head="chunk=3 rounded-chunks=2" | FileCheck %s --check-prefix=FEW

#bse = #transformer.dims<batch, sequence, embed>
#bs = #transformer.dims<batch, sequence>
#ve = #transformer.dims<vocab, embed>

// Logits exist for 8 tokens at a time: half of a sequence. Each chunk adds its
// part of the weight's gradient. The first makes the sum, equal ones behind it
// are one piece that repeats.
// CHECK-LABEL: func.func @head
// CHECK: transformer.contract "abz,vz->abv" {{.*}} -> tensor<1x8x32xf32
// CHECK: transformer.contract "abz,vz->abv" {{.*}} -> tensor<1x8x32xf32
// CHECK: %[[PARTS:.*]]:2 = transformer.repeat 2 over "sequence" cut(%{{.*}}, %{{.*}} : tensor<1x16x4xf32, #{{.*}}>, tensor<1x16xi32, #{{.*}}>) share(
// CHECK: transformer.contract "abz,vz->abv" {{.*}} -> tensor<1x8x32xf32
// CHECK: transformer.accumulate{{ +}}gradient "head"
// CHECK: transformer.yield %{{.*}}, %{{.*}} : tensor<1x8xf32, #{{.*}}>, tensor<1x8x4xf32, #{{.*}}>
// CHECK-NOT: "abz,vz->abv"
// CHECK: transformer.unslice %{{.*}}, %[[PARTS]]#0 dim "batch" offsets [0, 1]
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

// -----
// A weight gradient that is not accumulated, since ranks keep parts of it, is summed over the chunks.
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
// SUM-LABEL: func.func @returned
func.func @returned(%h: tensor<6x4xf32, #se>, %w: tensor<32x4xf32, #ve>, %t: tensor<6xi32, #transformer.dims<sequence>>) -> tensor<32x4xf32, #ve> {
  // SUM: %[[FIRST:.*]] = transformer.contract "av,az->vz"
  // SUM: %[[BOTH:.*]] = transformer.contract "av,az->vz" {{.*}} bias %[[FIRST]]
  // SUM: return %[[BOTH]]
  %loss, %dh, %dw = transformer.head_loss_grad %h, %w, %t scale 1.0 : tensor<6x4xf32, #se>, tensor<32x4xf32, #ve>, tensor<6xi32, #transformer.dims<sequence>>
      -> tensor<f32>, tensor<6x4xf32, #se>, tensor<32x4xf32, #ve>
  return %dw : tensor<32x4xf32, #ve>
}

// -----
// A gradient that is kept in bf16 is rounded after few chunks, or the chunks are summed in f32.
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
module attributes {transformer.gradient_type = bf16} {
  // SUM-LABEL: func.func @rounded
  // FEW-LABEL: func.func @rounded
  func.func @rounded(%h: tensor<6x4xbf16, #se>, %w: tensor<32x4xbf16, #ve>, %t: tensor<6xi32, #transformer.dims<sequence>>) -> tensor<6x4xbf16, #se> {
    // SUM: %[[FIRST:.*]] = transformer.contract "av,az->vz" {{.*}} -> tensor<32x4xf32
    // SUM-NOT: accumulate
    // SUM: %[[BOTH:.*]] = transformer.contract "av,az->vz" {{.*}} bias %[[FIRST]]
    // SUM: transformer.accumulate{{ +}}gradient "w", %[[BOTH]] : tensor<32x4xf32
    // FEW-COUNT-2: transformer.accumulate{{ +}}gradient "w", %{{.*}} : tensor<32x4xbf16
    %loss, %dh, %dw = transformer.head_loss_grad %h, %w, %t scale 1.0 : tensor<6x4xbf16, #se>, tensor<32x4xbf16, #ve>, tensor<6xi32, #transformer.dims<sequence>>
        -> tensor<f32>, tensor<6x4xbf16, #se>, tensor<32x4xbf16, #ve>
    transformer.accumulate gradient "w", %dw : tensor<32x4xbf16, #ve>
    return %dh : tensor<6x4xbf16, #se>
  }
  // What ranks reduce is rounded once.
  // SUM-LABEL: func.func @reduced
  func.func @reduced(%h: tensor<6x4xbf16, #se>, %w: tensor<32x4xbf16, #ve>, %t: tensor<6xi32, #transformer.dims<sequence>>) -> tensor<32x4xbf16, #ve> {
    // SUM: %[[FIRST:.*]] = transformer.contract "av,az->vz" {{.*}} -> tensor<32x4xf32
    // SUM: %[[BOTH:.*]] = transformer.contract "av,az->vz" {{.*}} bias %[[FIRST]]
    // SUM: %[[ROUNDED:.*]] = transformer.map ins(%[[BOTH]]
    // SUM: return %[[ROUNDED]]
    %loss, %dh, %dw = transformer.head_loss_grad %h, %w, %t scale 1.0 : tensor<6x4xbf16, #se>, tensor<32x4xbf16, #ve>, tensor<6xi32, #transformer.dims<sequence>>
        -> tensor<f32>, tensor<6x4xbf16, #se>, tensor<32x4xbf16, #ve>
    return %dw : tensor<32x4xbf16, #ve>
  }
}

// -----
// A sum goes from turn to turn. With several sequences, whose last chunk is
// shorter, sequences repeat and chunks within them.
#bse = #transformer.dims<batch, sequence, embed>
#bs = #transformer.dims<batch, sequence>
#ve = #transformer.dims<vocab, embed>
// TURNS-LABEL: func.func @nested
// SUM-LABEL: func.func @nested
func.func @nested(%h: tensor<3x8x4xf32, #bse>, %w: tensor<32x4xf32, #ve>, %t: tensor<3x8xi32, #bs>) -> tensor<32x4xf32, #ve> {
  // SUM: %[[FIRST:.*]] = transformer.contract "abv,abz->vz"
  // SUM: %[[SECOND:.*]] = transformer.contract "abv,abz->vz" {{.*}} bias %[[FIRST]]
  // SUM: %[[THIRD:.*]] = transformer.contract "abv,abz->vz" {{.*}} bias %[[SECOND]]
  // SUM: %[[ALL:.*]]:3 = transformer.repeat 2 over "batch" {{.*}} carry(%[[THIRD]]
  // SUM: %[[INNER:.*]]:3 = transformer.repeat 2 over "sequence"
  // SUM: %[[REST:.*]] = transformer.contract "abv,abz->vz" {{.*}} bias %[[INNER]]#2
  // SUM: transformer.yield %{{.*}}, %{{.*}}, %[[REST]]
  // SUM: return %[[ALL]]#2
  // TURNS: transformer.repeat 7 over "sequence"
  // TURNS: transformer.repeat 2 over "batch"
  // TURNS: transformer.repeat 8 over "sequence"
  %loss, %dh, %dw = transformer.head_loss_grad %h, %w, %t scale 1.0 : tensor<3x8x4xf32, #bse>, tensor<32x4xf32, #ve>, tensor<3x8xi32, #bs>
      -> tensor<f32>, tensor<3x8x4xf32, #bse>, tensor<32x4xf32, #ve>
  return %dw : tensor<32x4xf32, #ve>
}
