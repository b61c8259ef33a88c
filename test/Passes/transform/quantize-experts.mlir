// RUN: meshwork-opt %s -transformer-quantize="targets=1024" | FileCheck %s
// RUN: meshwork-opt %s -transformer-quantize="targets=1024 weights-per-step" | FileCheck %s --check-prefix=STEP
// RUN: not meshwork-opt %s -transformer-quantize="targets=0" 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: experts in FP8: expected a function @update that assigns the gradient norm, and at least one target of a step

!x = tensor<6x4xbf16, #transformer.dims<sequence, embed>>
!c = tensor<6x3xi32, #transformer.dims<sequence, choices>>
!p = tensor<6x3xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x8x4xbf16, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x8xbf16, #transformer.dims<experts, embed, expert_ffn>>

// Operands are rounded as they are, in 8 bits and back. Rows have a scale that
// is known before the step, whatever sizes are.
// CHECK-LABEL: func.func @microbatch
// STEP-LABEL: func.func @microbatch
func.func @microbatch(%x: !x, %c: !c, %p: !p, %dy0: !x) {
  // CHECK-DAG: %[[DM:.*]] = transformer.state{{ +}}optimizer "down" slot "row_magnitude" : tensor<f32>
  // CHECK-DAG: %[[DS:.*]]:2 = transformer.map ins(%[[DM]] : tensor<f32>)
  // CHECK-DAG: transformer.state{{ +}}optimizer "gate" slot "row_magnitude" : tensor<f32>
  // CHECK-DAG: transformer.state{{ +}}optimizer "up" slot "row_magnitude" : tensor<f32>
  %g = transformer.parameter "gate" init <constant, 1.0> : !up
  %u = transformer.parameter "up" init <constant, 1.0> : !up
  %d = transformer.parameter "down" init <constant, 1.0> : !down
  // STEP: transformer.map ins(%{{.*}} : {{.*}} {transformer.of_step} -> tensor<5x8x4xf8E4M3FN
  // CHECK: transformer.reduce{{ +}}max
  // CHECK: %[[QX:.*]] = transformer.map ins(%arg0, %{{.*}}#0 : {{.*}} -> tensor<6x4xf8E4M3FN
  // CHECK: %[[X:.*]] = transformer.map ins(%[[QX]], %{{.*}}#1 : {{.*}} -> tensor<6x4xbf16
  // CHECK: %[[QG:.*]] = transformer.map ins(%{{.*}}#0 : {{.*}} -> tensor<5x8x4xf8E4M3FN
  // CHECK: %[[G:.*]] = transformer.map ins(%[[QG]], %{{.*}}#1 : {{.*}} -> tensor<5x8x4xbf16
  // CHECK: %[[Y:.*]], %[[M:.*]] = transformer.experts silu %[[X]], %{{.*}} gate %[[G]] up %[[U:.*]] down %[[D:.*]] rounded %[[DS]]#0 : tensor<f32> -> tensor<f32>
  // CHECK-NEXT: transformer.accumulate{{ +}}magnitude "down" slot "row_now", %[[M]] : tensor<f32>
  %y = transformer.experts silu %x, %c, %p gate %g up %u down %d : !x, !c, !p, !up, !down
  %dy = transformer.map ins(%y : !x) {transformer.pass = #transformer.pass<backward>} -> !x {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    transformer.yield %0 : f32
  }
  // The backward pass has the same operands, so that it takes what is built of
  // them.
  // CHECK: %[[QDY:.*]] = transformer.map {{.*}} -> tensor<6x4xf8E5M2
  // CHECK: %[[DY:.*]] = transformer.map ins(%[[QDY]]
  // CHECK: transformer.experts_grad silu %[[X]], %{{.*}} gate %[[G]] up %[[U]] down %[[D]] of %[[DY]] rounded %[[DS]]#0, %{{.*}}#0, %{{.*}}#0
  // CHECK-DAG: transformer.accumulate{{ +}}magnitude "gate" slot "row_now", %{{.*}} {transformer.pass = #transformer.pass<backward>}
  // CHECK-DAG: transformer.accumulate{{ +}}magnitude "up" slot "row_now", %{{.*}} {transformer.pass = #transformer.pass<backward>}
  %dx, %dp, %dg, %du, %dd = transformer.experts_grad silu %x, %c, %p gate %g up %u down %d of %dy {transformer.pass = #transformer.pass<backward>} : !x, !c, !p, !up, !down
  transformer.accumulate gradient "gate", %dg : !up
  transformer.accumulate gradient "up", %du : !up
  transformer.accumulate gradient "down", %dd : !down
  return
}

// CHECK-LABEL: func.func @update
// CHECK-COUNT-3: transformer.assign{{ +}}optimizer "{{.*}}" slot "row_magnitude"
func.func @update() {
  %norm = transformer.state gradient "gate" : tensor<5x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
  %sum = transformer.reduce add %norm over <experts, expert_ffn, embed> : tensor<5x8x4xf32, #transformer.dims<experts, expert_ffn, embed>> -> tensor<f32>
  transformer.assign grad_norm "", %sum : tensor<f32>
  return
}
