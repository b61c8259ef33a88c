// RUN: meshwork-opt %s -split-input-file -transformer-bind="batch=4 sequence=16 microbatches=2" | FileCheck %s

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

// Heads that are only added up take in their share, anything else is divided.
// CHECK-LABEL: func.func @loss
func.func @loss(%t: tensor<?x?xi32, #transformer.dims<batch, sequence>>,
                %x: tensor<?x?x2xf32, #transformer.dims<batch, sequence, embed>>,
                %w: tensor<8x2xf32, #transformer.dims<vocab, embed>>) -> tensor<f32> {
  // CHECK: transformer.head_loss {{.*}} scale 3.906250e-03
  %0 = transformer.head_loss %x, %w, %t scale 0.5 : tensor<?x?x2xf32, #transformer.dims<batch, sequence, embed>>,
      tensor<8x2xf32, #transformer.dims<vocab, embed>>, tensor<?x?xi32, #transformer.dims<batch, sequence>> -> tensor<f32>
  // CHECK: %[[TWICE:.*]] = transformer.head_loss {{.*}} scale 1.562500e-02
  %1 = transformer.head_loss %x, %w, %t scale 1.0 : tensor<?x?x2xf32, #transformer.dims<batch, sequence, embed>>,
      tensor<8x2xf32, #transformer.dims<vocab, embed>>, tensor<?x?xi32, #transformer.dims<batch, sequence>> -> tensor<f32>
  // CHECK: %[[SQUARE:.*]] = transformer.mul %[[TWICE]], %[[TWICE]]
  %2 = transformer.mul %1, %1 : tensor<f32>, tensor<f32> -> tensor<f32>
  // CHECK: %[[HALF:.*]] = transformer.map ins(%[[SQUARE]] :
  // CHECK: arith.constant 5.000000e-01
  // CHECK: transformer.add %{{.*}}, %[[HALF]]
  %3 = transformer.add %0, %2 : tensor<f32>, tensor<f32> -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// Nothing is open, nothing changes.
// CHECK-LABEL: func.func @closed
// CHECK-NEXT: return %{{.*}} : tensor<3xf32, #{{.*}}>
func.func @closed(%x: tensor<3xf32, #transformer.dims<embed>>) -> tensor<3xf32, #transformer.dims<embed>> {
  return %x : tensor<3xf32, #transformer.dims<embed>>
}
