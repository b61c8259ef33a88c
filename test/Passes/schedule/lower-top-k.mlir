// RUN: meshwork-opt %s -schedule-lower | FileCheck %s
// Scores and choices are rows, which lie as they are; what is no padding comes
// beside them.
#bsn = #transformer.dims<batch, sequence, experts>
#bsk = #transformer.dims<batch, sequence, choices>
#bs = #transformer.dims<batch, sequence>
!tokens = tensor<2x4xi32, #bs>
// CHECK: schedule.buffer "{{.*}}" activations : memref<96xi8>
// CHECK: schedule.list forward
// CHECK: schedule.top_k "scores" flops 0 bytes 352 %{{.*}} to %{{.*}} : memref<2x4x8xf32, strided<[32, 8, 1]>> to memref<2x4x3xi32, strided<[12, 3, 1]>>
// CHECK: schedule.top_k "scores" flops 0 bytes 384 %{{.*}} valid %{{.*}} : memref<2x4xf32, strided<[4, 1]>> groups 4 kept 2 by{{ +}}two_best to %
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %s = transformer.parameter "scores" init <constant, 1.0> : tensor<2x4x8xf32, #bsn>
    %v = transformer.parameter "valid" init <constant, 1.0> : tensor<2x4xf32, #bs>
    %t = transformer.parameter "t" init <constant, 1.0> : tensor<8x4xf32, #transformer.dims<experts, embed>>
    %0 = transformer.top_k %s : tensor<2x4x8xf32, #bsn> -> tensor<2x4x3xi32, #bsk>
    %1 = transformer.embedding %t, %0 : tensor<8x4xf32, #transformer.dims<experts, embed>>, tensor<2x4x3xi32, #bsk> -> tensor<2x4x3x4xf32, #transformer.dims<batch, sequence, choices, embed>>
    %2 = transformer.top_k %s valid %v : tensor<2x4xf32, #bs> groups 4 kept 2 by two_best : tensor<2x4x8xf32, #bsn> -> tensor<2x4x3xi32, #bsk>
    return
  }
  func.func @update() {
    return
  }
}
