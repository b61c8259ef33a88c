// RUN: meshwork-opt %s -transformer-count-choices -split-input-file | FileCheck %s

// Two routers, the second of three experts: its row has a zero behind them, which is not the least count.
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[CHOICES:.*]] = transformer.top_k
// CHECK: %[[CHOSEN:.*]] = transformer.pick_grad %{{.*}} at %[[CHOICES]]
// CHECK: %[[COUNTS:.*]] = transformer.contract "abc,ab->c" %[[CHOSEN]]
// CHECK: %[[OWN:.*]] = transformer.unslice %[[COUNTS]] dim "candidates" offsets [0]
// CHECK: %[[ALL:.*]] = transformer.unslice %[[OWN]] dim "routers" offsets [0]
// CHECK: transformer.accumulate{{ +}}metric "expert_counts" exact, %[[ALL]] : tensor<2x4xf32
// CHECK: transformer.unslice %{{.*}} dim "routers" offsets [1]
// CHECK: transformer.accumulate{{ +}}metric "expert_counts" exact
// CHECK-LABEL: func.func @update
// CHECK: transformer.state{{ +}}loss
// CHECK-NEXT: %[[SUM:.*]] = transformer.state{{ +}}metric "expert_counts" : tensor<2x4xi32
// CHECK-NEXT: transformer.assign{{ +}}loss
// CHECK: transformer.reduce max
// CHECK: transformer.reduce add
// CHECK: arith.constant 0xFF800000
// CHECK: transformer.reduce max
// CHECK: transformer.assign{{ +}}metric "expert_load", %{{.*}} : tensor<2x3xf32
!x = tensor<2x8x4xf32, #transformer.dims<batch, sequence, embed>>
!s = tensor<2x8x4xf32, #transformer.dims<batch, sequence, routed>>
!t = tensor<2x8x3xf32, #transformer.dims<batch, sequence, routed>>
!c = tensor<2x8x2xf32, #transformer.dims<batch, sequence, choices>>
!n = tensor<2x8x2xi32, #transformer.dims<batch, sequence, choices>>
!w = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!d = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
!v = tensor<3x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!e = tensor<3x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @microbatch(%x: !x, %s: !s, %w: !w, %d: !d, %t: !t, %v: !v, %e: !e) -> !x {
  %choices = transformer.top_k %s : !s -> !n
  %weights = transformer.pick %s at %choices : !s, !n -> !c
  %y = transformer.experts silu %x, %choices, %weights gate %w up %w down %d : !x, !n, !c, !w, !d
  %more = transformer.top_k %t : !t -> !n
  %z = transformer.experts silu %y, %more, %weights gate %v up %v down %e : !x, !n, !c, !v, !e
  return %z : !x
}
func.func @update() {
  %loss = transformer.state loss "" : tensor<f32>
  transformer.assign loss "", %loss : tensor<f32>
  return
}

// -----

// Without experts nothing changes.
// CHECK-LABEL: func.func @microbatch
// CHECK-NOT: metric
func.func @microbatch(%x: tensor<f32>) {
  transformer.accumulate loss "", %x : tensor<f32>
  return
}
func.func @update() {
  %loss = transformer.state loss "" : tensor<f32>
  transformer.assign loss "", %loss : tensor<f32>
  return
}

// -----

// What is dropped is counted, too, in the row of its router; beside a balance loss stands that of even routing.
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[CHOICES:.*]] = transformer.top_k
// CHECK: transformer.accumulate{{ +}}metric "expert_counts" exact
// CHECK: %[[KEPT:.*]] = transformer.limit_choices %[[CHOICES]]
// CHECK: %[[DROPS:.*]] = transformer.map ins(%[[CHOICES]], %[[KEPT]]
// CHECK: %[[SUM:.*]] = transformer.reduce add %[[DROPS]]
// CHECK: %[[ROW:.*]] = transformer.unslice %[[SUM]] dim "routers" offsets [0] : {{.*}} -> tensor<1xf32
// CHECK: transformer.accumulate{{ +}}metric "dropped_counts" exact, %[[ROW]]
// CHECK-LABEL: func.func @update
// CHECK: %[[ALL:.*]] = transformer.state{{ +}}metric "dropped_counts" : tensor<1xi32
// CHECK: arith.constant 2.000000e+00
// CHECK: transformer.assign{{ +}}metric "balance_at_even"
// CHECK: transformer.map ins(%[[ALL]]
// CHECK: transformer.assign{{ +}}metric "dropped"
// CHECK: transformer.assign{{ +}}metric "expert_load"
!x = tensor<4x8x4xf32, #transformer.dims<batch, sequence, embed>>
!s = tensor<4x8x4xf32, #transformer.dims<batch, sequence, routed>>
!c = tensor<4x8x2xf32, #transformer.dims<batch, sequence, choices>>
!n = tensor<4x8x2xi32, #transformer.dims<batch, sequence, choices>>
!w = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!d = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @microbatch(%x: !x, %s: !s, %w: !w, %d: !d) -> !x {
  %choices = transformer.top_k %s : !s -> !n
  %weights = transformer.pick %s at %choices : !s, !n -> !c
  %kept = transformer.limit_choices %choices experts 4 most 2 : !n
  %y = transformer.experts silu %x, %kept, %weights gate %w up %w down %d capacity 2 group 1 : !x, !n, !c, !w, !d
  return %y : !x
}
func.func @update() {
  %loss = transformer.state loss "" : tensor<f32>
  %balance = transformer.state metric "balance_loss" : tensor<f32>
  transformer.assign loss "", %loss : tensor<f32>
  transformer.assign metric "balance_loss", %balance : tensor<f32>
  return
}
