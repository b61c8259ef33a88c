// RUN: meshwork-opt %s -transformer-count-choices=bias-rate=0.5 | FileCheck %s
// RUN: meshwork-opt %s -transformer-count-choices | FileCheck %s --check-prefix=NONE

// Once the norm is known, the bias moves by the sign of the mean less the count.
// CHECK-LABEL: func.func @update
// CHECK: %[[SUM:.*]] = transformer.state{{ +}}metric "expert_counts"
// CHECK: %[[TOTAL:.*]] = transformer.reduce add
// CHECK: transformer.assign{{ +}}grad_norm "", %[[NORM:.*]] :
// CHECK: %[[OLD:.*]] = transformer.state{{ +}}weight "bias" : tensor<4xf32
// CHECK: %[[ROW:.*]] = transformer.slice %[[SUM]] dim "routers" offset 0
// CHECK: %[[OWN:.*]] = transformer.slice %[[ROW]] dim "candidates" offset 0
// CHECK: %[[ALL:.*]] = transformer.slice %[[TOTAL]] dim "routers" offset 0
// CHECK: %[[NEW:.*]] = transformer.map ins(%[[OLD]], %[[OWN]], %[[ALL]], %[[NORM]]
// CHECK: transformer.assign{{ +}}weight "bias", %[[NEW]]
// NONE-NOT: assign{{ +}}weight
!x = tensor<2x8x4xf32, #transformer.dims<batch, sequence, embed>>
!s = tensor<2x8x4xf32, #transformer.dims<batch, sequence, routed>>
!b = tensor<4xf32, #transformer.dims<routed>>
!c = tensor<2x8x2xf32, #transformer.dims<batch, sequence, choices>>
!n = tensor<2x8x2xi32, #transformer.dims<batch, sequence, choices>>
!w = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!d = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @microbatch(%x: !x, %s: !s, %w: !w, %d: !d) -> !x {
  %b = transformer.parameter "bias" untrained init <constant, 0.0> : !b
  %biased = transformer.map ins(%s, %b : !s, !b) -> !s {
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    transformer.yield %t : f32
  }
  %choices = transformer.top_k %biased : !s -> !n
  %weights = transformer.pick %s at %choices : !s, !n -> !c
  %y = transformer.experts silu %x, %choices, %weights gate %w up %w down %d : !x, !n, !c, !w, !d
  return %y : !x
}
func.func @update() {
  %loss = transformer.state loss "" : tensor<f32>
  transformer.assign loss "", %loss : tensor<f32>
  %norm = transformer.step_input learning_rate : tensor<f32>
  transformer.assign grad_norm "", %norm : tensor<f32>
  return
}
