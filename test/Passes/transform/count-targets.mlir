// RUN: meshwork-opt %s -transformer-bind="batch=2 sequence=8 microbatches=3 counts-targets" -transformer-count-targets | FileCheck %s

// The sum of each sample's count is of the step, so the scale stays 1: neither tokens nor microbatches divide it. What
// is squared is no part of the step's mean, and is averaged over microbatches, of which each head then has its share.
#bs = #transformer.dims<batch, sequence>
!h = tensor<?x?x4xf32, #transformer.dims<batch, sequence, embed>>
!w = tensor<16x4xf32, #transformer.dims<vocab, embed>>
!tokens = tensor<?x?xi32, #bs>
module {
  // CHECK: func.func @loss(%{{.*}}: tensor<2x8xi32, #{{.*}}>, %[[T:.*]]: tensor<2x8xi32, #{{.*}}> {transformer.input = "inner_targets"}, %[[H:.*]]: {{.*}}, %[[N:.*]]: tensor<2xf32, #{{.*}}> {transformer.input = "target_counts"})
  func.func @loss(%tokens: !tokens, %targets: !tokens, %h: !h) -> tensor<f32> {
    // CHECK: %[[SUM:.*]] = transformer.reduce add %[[N]] over #{{.*}} :
    %w = transformer.parameter "w" init <normal, 0.0, 0.02> : !w
    // CHECK: transformer.head_loss %[[H]], %{{.*}}, %[[T]] counted(%[[SUM]] : tensor<f32>) scale 1.000000e+00
    %a = transformer.head_loss %h, %w, %targets scale 1.0 : !h, !w, !tokens -> tensor<f32>
    // CHECK: transformer.head_loss %[[H]], %{{.*}}, %[[T]] counted(%[[SUM]] : tensor<f32>) scale 6.000000e+00
    %b = transformer.head_loss %h, %w, %targets scale 2.0 : !h, !w, !tokens -> tensor<f32>
    %c = transformer.mul %b, %b : tensor<f32>, tensor<f32> -> tensor<f32>
    %d = transformer.add %a, %c : tensor<f32>, tensor<f32> -> tensor<f32>
    return %d : tensor<f32>
  }
}
