// RUN: meshwork-opt %s -transformer-quantize | FileCheck %s
// RUN: meshwork-opt %s -transformer-quantize="splits=ffn=2,embed=2" | FileCheck %s --check-prefix=SPLIT
// RUN: not meshwork-opt %s -transformer-quantize="splits=ffn" 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not meshwork-opt %s -transformer-quantize="splits=ffn=0" 2>&1 | FileCheck %s --check-prefix=ERROR

#te = #transformer.dims<sequence, embed>
#fe = #transformer.dims<ffn, embed>
#tf = #transformer.dims<sequence, ffn>
#tt = #transformer.dims<sequence, embed>

// A linear layer: activation and weight in e4m3, both with the summed dim last
// as they are; the scale is a power of two from the largest magnitude.
// CHECK-LABEL: func.func @microbatch
// SPLIT-LABEL: func.func @microbatch
func.func @microbatch(%x: tensor<32x16xbf16, #te>, %small: tensor<8x16xbf16, #te>) {
  %w = transformer.parameter "w" init <constant, 1.0> : tensor<16x16xbf16, #fe>
  // CHECK: %[[ABS:.*]] = transformer.map ins(%[[X:arg0]] :
  // CHECK: math.absf
  // CHECK: %[[MAX:.*]] = transformer.reduce{{ +}}max %[[ABS]] over #sequence_embed {{.*}} -> tensor<f32>
  // CHECK: %[[S:.*]]:2 = transformer.map ins(%[[MAX]] : tensor<f32>) -> tensor<f32>, tensor<f32>
  // CHECK: arith.constant 262 : i32
  // CHECK: %[[T:.*]]:2 = transformer.map
  // CHECK: %[[QX:.*]] = transformer.map ins(%arg0, %[[S]]#0 : {{.*}} -> tensor<32x16xf8E4M3FN, #{{.*}}> {
  // CHECK: arith.mulf
  // CHECK: %[[QW:.*]] = transformer.map ins(%{{.*}}, %[[T]]#0 : {{.*}} -> tensor<16x16xf8E4M3FN
  // CHECK: %[[Y:.*]] = transformer.contract "te,fe->tf" %[[QX]], %[[QW]] scaled %[[S]]#1, %[[T]]#1 {{.*}} {transformer.parameter = "w"} {{.*}} -> tensor<32x16xbf16
  // A rank's half of 16 is none of 16.
  // SPLIT-NOT: f8
  %y = transformer.contract "te,fe->tf" %x, %w : tensor<32x16xbf16, #te>, tensor<16x16xbf16, #fe> -> tensor<32x16xbf16, #tf>

  // Eight rows are too few, and a product without a parameter is no layer.
  // CHECK: transformer.contract "te,fe->tf" %arg1, %{{.*}} : tensor<8x16xbf16
  %z = transformer.contract "te,fe->tf" %small, %w : tensor<8x16xbf16, #te>, tensor<16x16xbf16, #fe> -> tensor<8x16xbf16, #tf>
  // CHECK: transformer.contract "te,tf->ef" %arg0, %[[Y]] : tensor<32x16xbf16
  %p = transformer.contract "te,tf->ef" %x, %y : tensor<32x16xbf16, #te>, tensor<32x16xbf16, #tf> -> tensor<16x16xbf16, #transformer.dims<embed, ffn>>

  // What is read in f32, such as the scores of a router, is exact.
  // CHECK: transformer.contract "te,fe->tf" %arg0, %{{.*}} : tensor<32x16xbf16, {{.*}}>, tensor<16x16xbf16, {{.*}}> -> tensor<32x16xf32
  %s = transformer.contract "te,fe->tf" %x, %w : tensor<32x16xbf16, #te>, tensor<16x16xbf16, #fe> -> tensor<32x16xf32, #tf>

  // The backward pass: gradients in e5m2 (57344 is 2^16 - 2^13, so 15 + 254).
  %dy = transformer.map ins(%y : tensor<32x16xbf16, #tf>) {transformer.pass = #transformer.pass<backward>} -> tensor<32x16xbf16, #tf> {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    transformer.yield %0 : f32
  }
  // CHECK: arith.constant 269 : i32
  // CHECK: %[[QDY:.*]] = transformer.map ins(%{{.*}}, %[[D:.*]]#0 : {{.*}} {transformer.not_before, transformer.pass = #transformer.pass<backward>} -> tensor<32x16xf8E5M2, #{{.*}}> {
  // Beside it, the copy that the other product reads.
  // CHECK: %[[QDYT:.*]] = transformer.map ins(%{{.*}}, %[[D]]#0 : {{.*}} {transformer.not_before, transformer.pass = #transformer.pass<backward>} -> tensor<16x32xf8E5M2, #{{.*}}> {
  // The weight with its rows as columns: "f" is summed now.
  // CHECK: %[[QWT:.*]] = transformer.map ins(%{{.*}}, %[[T]]#0 : {{.*}} {transformer.not_before, transformer.pass = #transformer.pass<backward>} -> tensor<16x16xf8E4M3FN, #{{.*}}> {
  // CHECK: transformer.contract "tf,ef->te" %[[QDY]], %[[QWT]] scaled %[[D]]#1, %[[T]]#1
  %dx = transformer.contract "tf,fe->te" %dy, %w {transformer.pass = #transformer.pass<backward>} : tensor<32x16xbf16, #tf>, tensor<16x16xbf16, #fe> -> tensor<32x16xbf16, #te>
  // Both with "t" last.
  // CHECK: %[[QXT:.*]] = transformer.map ins(%arg0, %[[S]]#0 : {{.*}} -> tensor<16x32xf8E4M3FN, #{{.*}}> {
  // CHECK-NOT: f8E5M2, #{{.*}}> {
  // CHECK: %[[DW:.*]] = transformer.contract "et,ft->fe" %[[QXT]], %[[QDYT]] scaled %[[S]]#1, %[[D]]#1
  // CHECK: transformer.accumulate{{ +}}gradient "w", %[[DW]]
  %dw = transformer.contract "te,tf->fe" %x, %dy {transformer.pass = #transformer.pass<backward>} : tensor<32x16xbf16, #te>, tensor<32x16xbf16, #tf> -> tensor<16x16xbf16, #fe>
  transformer.accumulate gradient "w", %dw : tensor<16x16xbf16, #fe>
  return
}
// ERROR: splits option: found 'ffn{{.*}}', expected a name and a number from 1 on
