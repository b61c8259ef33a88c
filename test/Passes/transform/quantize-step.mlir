// RUN: meshwork-opt %s -transformer-quantize="weights-per-step" | FileCheck %s
// RUN: meshwork-opt %s -transformer-quantize="weights-per-step" -fusion-fuse -schedule-lower | FileCheck %s --check-prefix=LISTS

#te = #transformer.dims<sequence, embed>
#fe = #transformer.dims<ffn, embed>
#tf = #transformer.dims<sequence, ffn>

// Scale and both copies of a weight stand behind it, for all its products: those
// of two layers and of the backward pass. They are of no layer and no pass.
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[W:.*]] = transformer.parameter "w"
// CHECK-NEXT: %[[ABS:.*]] = transformer.map ins(%[[W]] : {{.*}} {transformer.of_step}
// CHECK: %[[MAX:.*]] = transformer.reduce{{ +}}max %[[ABS]] {{.*}} {transformer.of_step}
// CHECK: %[[S:.*]]:2 = transformer.map ins(%[[MAX]] : tensor<f32>) {transformer.of_step}
// CHECK: %[[COPY:.*]] = transformer.map ins(%[[W]], %[[S]]#0 : {{.*}} {transformer.of_step} -> tensor<16x16xf8E4M3FN, #[[D:.*]]> {
// CHECK: %[[OTHER:.*]] = transformer.map ins(%[[W]], %[[S]]#0 : {{.*}} {transformer.of_step} -> tensor<16x16xf8E4M3FN
// CHECK-NOT: transformer.of_step
// CHECK: transformer.contract "te,fe->tf" %{{.*}}, %{{.*}} scaled %{{.*}}#1, %[[S]]#1
// CHECK: transformer.contract "te,fe->tf" %{{.*}}, %{{.*}} scaled %{{.*}}#1, %[[S]]#1
// CHECK: transformer.contract "tf,ef->te" %{{.*}}, %{{.*}} scaled %{{.*}}#1, %[[S]]#1

// The weight is read in the list of the step alone. Its maximum of parts is
// gone behind the list; both copies stay, and one kernel makes them.
// LISTS-DAG: %[[WEIGHT:.*]] = schedule.buffer "w (weight)" weights persistent
// LISTS-DAG: %[[ONE:.*]] = schedule.buffer "weight of the step" weights persistent : memref<256xi8>
// LISTS-DAG: %[[TWO:.*]] = schedule.buffer "weight of the step" weights persistent : memref<256xi8>
// LISTS-DAG: schedule.buffer "t{{.*}}" workspace : memref<
// LISTS: schedule.list{{ +}}step
// LISTS: schedule.view %[[WEIGHT]]
// LISTS: schedule.launch
// LISTS: schedule.launch
// LISTS: schedule.launch {{.*}} outputs 2({{.*}}memref<16x16xbf16{{.*}}memref<16x16xf8E4M3FN{{.*}}memref<16x16xf8E4M3FN
// LISTS: schedule.list{{ +}}forward
// LISTS-NOT: schedule.view %[[WEIGHT]] at
// LISTS: schedule.list{{ +}}update
func.func @microbatch(%tokens: tensor<1x32xi32, #transformer.dims<batch, sequence>>, %targets: tensor<1x32xi32, #transformer.dims<batch, sequence>>) {
  %t = transformer.parameter "t" init <constant, 1.0> : tensor<32x16xbf16, #te>
  %w = transformer.parameter "w" init <constant, 1.0> : tensor<16x16xbf16, #fe>
  %x = transformer.map ins(%t : tensor<32x16xbf16, #te>) -> tensor<32x16xbf16, #te> {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    transformer.yield %0 : f32
  }
  %y = transformer.contract "te,fe->tf" %x, %w {transformer.layer = 0 : i64} : tensor<32x16xbf16, #te>, tensor<16x16xbf16, #fe> -> tensor<32x16xbf16, #tf>
  %z = transformer.contract "te,fe->tf" %x, %w {transformer.layer = 1 : i64} : tensor<32x16xbf16, #te>, tensor<16x16xbf16, #fe> -> tensor<32x16xbf16, #tf>
  %dy = transformer.map ins(%y, %z : tensor<32x16xbf16, #tf>, tensor<32x16xbf16, #tf>) {transformer.pass = #transformer.pass<backward>} -> tensor<32x16xbf16, #tf> {
  ^bb0(%e: f32, %f: f32):
    %0 = arith.mulf %e, %f : f32
    transformer.yield %0 : f32
  }
  %dx = transformer.contract "tf,fe->te" %dy, %w {transformer.layer = 1 : i64, transformer.pass = #transformer.pass<backward>} : tensor<32x16xbf16, #tf>, tensor<16x16xbf16, #fe> -> tensor<32x16xbf16, #te>
  transformer.accumulate gradient "t", %dx : tensor<32x16xbf16, #te>
  return
}
func.func @update() {
  return
}
