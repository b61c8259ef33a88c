// RUN: meshwork-opt %s -split-input-file -transformer-bind="batch=4 sequence=16 tokens-per-step=128" | FileCheck %s

// Names say which open dim gets which size; the loss becomes a mean.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: tensor<4x16xi32
func.func @loss(%tokens: tensor<?x?xi32, #transformer.dims<batch, sequence>>,
                %w: tensor<8x2xf32, #transformer.dims<vocab, embed>>) -> tensor<f32> {
  // CHECK: transformer.embedding {{.*}} -> tensor<4x16x2xf32
  %x = transformer.embedding %w, %tokens : tensor<8x2xf32, #transformer.dims<vocab, embed>>,
      tensor<?x?xi32, #transformer.dims<batch, sequence>> -> tensor<?x?x2xf32, #transformer.dims<batch, sequence, embed>>
  // CHECK: transformer.head_loss {{.*}} scale 7.812500e-03
  %loss = transformer.head_loss %x, %w, %tokens scale 1.0 : tensor<?x?x2xf32, #transformer.dims<batch, sequence, embed>>,
      tensor<8x2xf32, #transformer.dims<vocab, embed>>, tensor<?x?xi32, #transformer.dims<batch, sequence>> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nothing is open, nothing changes.
// CHECK-LABEL: func.func @closed
// CHECK-NEXT: return %{{.*}} : tensor<3xf32, #{{.*}}>
func.func @closed(%x: tensor<3xf32, #transformer.dims<embed>>) -> tensor<3xf32, #transformer.dims<embed>> {
  return %x : tensor<3xf32, #transformer.dims<embed>>
}
