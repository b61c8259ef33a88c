// RUN: meshwork-opt %s -transformer-quantize-weights="type=int8" | FileCheck %s
// RUN: meshwork-opt %s -transformer-quantize-weights="type=fp8" | FileCheck %s --check-prefix=FP8
// RUN: meshwork-opt %s -transformer-quantize-weights="type=compute" | FileCheck %s --check-prefix=NONE
// RUN: meshwork-opt %s -transformer-quantize-weights="type=int8" -fusion-fuse -schedule-lower | FileCheck %s --check-prefix=LISTS
// RUN: not meshwork-opt %s -transformer-quantize-weights="type=int4" 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: found 'int4', expected
// NONE-NOT: transformer.of_step

#te = #transformer.dims<sequence, embed>
#fe = #transformer.dims<ffn, embed>
#ef = #transformer.dims<embed, ffn>
#tf = #transformer.dims<sequence, ffn>

// One scale for each row of a matrix; none for a vector, or a weight whose
// product is read in f32.
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[W:.*]] = transformer.parameter "w"
// CHECK-NEXT: %[[ABS:.*]] = transformer.map ins(%[[W]] : {{.*}} {transformer.of_step} -> tensor<16x16xbf16
// CHECK: %[[MAX:.*]] = transformer.reduce{{ +}}max %[[ABS]] over #embed {transformer.of_step}
// CHECK: %[[S:.*]]:2 = transformer.map ins(%[[MAX]] : tensor<16xf32, {{.*}}) {transformer.of_step} -> tensor<16xf32, {{.*}}tensor<16xf32
// CHECK: arith.constant 1.270000e+02 : f32
// CHECK: %[[Q:.*]] = transformer.map ins(%[[W]], %[[S]]#0 : {{.*}} {transformer.of_step} -> tensor<16x16xi8
// CHECK: %[[V:.*]] = transformer.parameter "v"
// CHECK-NOT: transformer.of_step
// CHECK: transformer.map ins(%{{.*}}, %[[V]] :
// Each pass, and each layer, makes its own wide copy right before its use.
// CHECK: %[[WIDE:.*]] = transformer.map ins(%[[Q]], %[[S]]#1 : {{.*}} {transformer.not_before, transformer.parameter = "w"} -> tensor<16x16xbf16
// CHECK: transformer.contract "te,fe->tf" %{{.*}}, %[[WIDE]] {transformer.parameter = "w"}
// CHECK: %[[AGAIN:.*]] = transformer.map ins(%[[Q]], %[[S]]#1 : {{.*}} {transformer.not_before, transformer.parameter = "w", transformer.pass = #transformer.pass<backward>}
// CHECK: transformer.contract "tf,fe->te" %{{.*}}, %[[AGAIN]]

// FP8: transformer.reduce{{ +}}max %{{.*}} over #ffn_embed {transformer.of_step}
// FP8: transformer.map ins(%{{.*}}, %[[F:.*]]#0 : {{.*}} {transformer.of_step} -> tensor<16x16xf8E4M3FN
// FP8: transformer.map ins(%{{.*}}, %[[F]]#1 : tensor<16x16xf8E4M3FN, {{.*}} -> tensor<16x16xbf16

// The weight is read in the list of the step alone.
// LISTS: %[[WEIGHT:.*]] = schedule.buffer "w (weight)" weights persistent
// LISTS: schedule.list{{ +}}step
// LISTS: schedule.view %[[WEIGHT]]
// LISTS: schedule.launch {{.*}}memref<16x16xi8
// LISTS: schedule.list{{ +}}forward
// LISTS-NOT: schedule.view %[[WEIGHT]] at
// LISTS: schedule.list{{ +}}update
func.func @microbatch(%tokens: tensor<1x32xi32, #transformer.dims<batch, sequence>>, %targets: tensor<1x32xi32, #transformer.dims<batch, sequence>>) {
  %x = transformer.parameter "x" init <constant, 1.0> : tensor<16xbf16, #transformer.dims<embed>>
  %w = transformer.parameter "w" init <constant, 1.0> : tensor<16x16xbf16, #fe>
  %v = transformer.parameter "v" init <constant, 1.0> : tensor<16xbf16, #transformer.dims<embed>>
  %h = transformer.map ins(%x, %v : tensor<16xbf16, #transformer.dims<embed>>, tensor<16xbf16, #transformer.dims<embed>>) -> tensor<32x16xbf16, #te> {
  ^bb0(%e: f32, %f: f32):
    %0 = arith.mulf %e, %f : f32
    transformer.yield %0 : f32
  }
  %y = transformer.contract "te,fe->tf" %h, %w : tensor<32x16xbf16, #te>, tensor<16x16xbf16, #fe> -> tensor<32x16xbf16, #tf>
  %dy = transformer.map ins(%y : tensor<32x16xbf16, #tf>) {transformer.pass = #transformer.pass<backward>} -> tensor<32x16xbf16, #tf> {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    transformer.yield %0 : f32
  }
  %dx = transformer.contract "tf,fe->te" %dy, %w {transformer.pass = #transformer.pass<backward>} : tensor<32x16xbf16, #tf>, tensor<16x16xbf16, #fe> -> tensor<32x16xbf16, #te>
  %dw = transformer.contract "te,tf->fe" %h, %dy {transformer.pass = #transformer.pass<backward>} : tensor<32x16xbf16, #te>, tensor<32x16xbf16, #tf> -> tensor<16x16xbf16, #fe>
  transformer.accumulate gradient "w", %dw : tensor<16x16xbf16, #fe>
  %dsum = transformer.reduce add %dx over <sequence> {transformer.pass = #transformer.pass<backward>} : tensor<32x16xbf16, #te> -> tensor<16xf32, #transformer.dims<embed>>
  transformer.accumulate gradient "v", %dsum : tensor<16xf32, #transformer.dims<embed>>
  return
}
func.func @update() {
  return
}
