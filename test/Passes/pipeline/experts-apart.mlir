// RUN: meshwork-opt %s -pipeline-cut-stages="axis=pp microbatches=4 schedule=zb-h1" | FileCheck %s
// RUN: meshwork-opt %s -pass-pipeline="builtin.module(pipeline-cut-stages{axis=pp microbatches=4 schedule=zb-h1},builtin.module(transformer-expand-rounds))" | FileCheck %s --check-prefix=ROUNDS
// RUN: meshwork-opt %s -pipeline-cut-stages="axis=pp microbatches=4" | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/transformer.accumulate gradient "up", %all#3/%%moved = mesh.all_reduce %all#3 sum over ["ep"] cause "partial" : !up -> !up transformer.accumulate gradient "up", %%moved/' %s | meshwork-opt -pipeline-cut-stages="axis=pp microbatches=4 schedule=zb-h1" | FileCheck %s --check-prefix=MOVED

// What the first round of an exchange makes of experts' gradients is of the list of gradients of weights. Further rounds
// add what they make to the accumulators, in the list before.
#t = #transformer.dims<sequence, embed>
#tc = #transformer.dims<sequence, choices>
#efx = #transformer.dims<experts, expert_ffn, embed>
#exf = #transformer.dims<experts, embed, expert_ffn>
#rows = #transformer.dims<rows, embed>
#ffn = #transformer.dims<rows, expert_ffn>
#backward = #transformer.pass<backward>
!x = tensor<6x4xf32, #t>
!c = tensor<6x2xi32, #tc>
!p = tensor<6x2xf32, #tc>
!up = tensor<4x8x4xf32, #efx>
!down = tensor<4x4x8xf32, #exf>
!slots = tensor<4x5xi32, #transformer.dims<sequence, slots>>
!places = tensor<12x2xi32, #tc>
!r = tensor<12x4xf32, #rows>
!h = tensor<12x8xf32, #ffn>
!b = tensor<5xi32, #transformer.dims<begins>>
// CHECK: transformer.stage_list input_grad stage 0
// CHECK-NOT: transformer.grouped_gradient
// CHECK: %[[ALL:.*]]:5 = transformer.expert_rounds {{.*}} apart to %{{[^,]*}}, %{{[^,]*}} :
// CHECK-NEXT: transformer.accumulate gradient "gate", %[[ALL]]#2
// CHECK: transformer.stage_list weight_grad stage 0
// CHECK: %[[GATE:.*]] = transformer.grouped_gradient
// CHECK: transformer.accumulate gradient "gate", %[[GATE]]
// CHECK: transformer.accumulate gradient "down"

// ROUNDS: transformer.stage_list input_grad stage 0
// ROUNDS: transformer.repeat 1 over "sequence" counted
// ROUNDS: transformer.accumulate gradient "gate"
// ROUNDS: transformer.accumulate gradient "down"
// ROUNDS: transformer.stage_list weight_grad stage 0
// ROUNDS: transformer.accumulate gradient "gate"

// WHOLE: transformer.stage_list backward stage 0
// WHOLE: transformer.grouped_gradient
// WHOLE: %[[ALL:.*]]:5 = transformer.expert_rounds
// WHOLE-NOT: apart
// WHOLE: transformer.accumulate gradient "gate", %[[ALL]]#2

// Where one is reduced before it is accumulated, all stay with their rounds.
// MOVED: transformer.stage_list input_grad stage 0
// MOVED: transformer.grouped_gradient
// MOVED: transformer.expert_rounds
// MOVED-NOT: apart
// MOVED: transformer.stage_list weight_grad stage 0
module attributes {mesh.mesh = #mesh.mesh<"pp"=2, "ep"=2>} {
func.func @microbatch(%x: !x, %c: !c, %p: !p, %rows: !r, %hidden: !h, %begins: !b, %s: !slots, %ranks: !c, %places: !places, %last: tensor<i32>) {
  %first = mesh.coordinate over ["ep"] of 8 : tensor<i32>
  %gate = transformer.parameter "gate" layer 0 init <constant, 1.0> : !up
  %up = transformer.parameter "up" layer 0 init <constant, 1.0> : !up
  %down = transformer.parameter "down" layer 0 init <constant, 1.0> : !down
  %w = transformer.parameter "w" layer 1 init <constant, 1.0> : tensor<4xf32, #transformer.dims<embed>>
  %y = transformer.add %x, %x {transformer.layer = 0 : i64} : !x, !x -> !x
  %z = transformer.map ins(%y, %w : !x, tensor<4xf32, #transformer.dims<embed>>) {transformer.layer = 1 : i64} -> !x {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    transformer.yield %m : f32
  }
  %loss = transformer.reduce add %z over <sequence, embed> {transformer.head} : !x -> tensor<f32>
  %dy = transformer.add %z, %y {transformer.layer = 1 : i64, transformer.pass = #backward} : !x, !x -> !x
  %d1 = transformer.reduce add %dy over <sequence> {transformer.layer = 1 : i64, transformer.pass = #backward} : !x -> tensor<4xf32, #transformer.dims<embed>>
  transformer.accumulate gradient "w", %d1 {transformer.layer = 1 : i64, transformer.pass = #backward} : tensor<4xf32, #transformer.dims<embed>>
  %dx = transformer.add %dy, %dy {transformer.layer = 0 : i64, transformer.pass = #backward} : !x, !x -> !x
  %dp = transformer.map ins(%p : !p) {transformer.layer = 0 : i64, transformer.pass = #backward} -> !p {
  ^bb0(%a: f32):
    transformer.yield %a : f32
  }
  %dgate = transformer.grouped_gradient %hidden, %rows by %begins {transformer.layer = 0 : i64, transformer.pass = #backward} : !h, !r, !b -> !up
  %dup = transformer.grouped_gradient %hidden, %rows by %begins {transformer.layer = 0 : i64, transformer.pass = #backward} : !h, !r, !b -> !up
  %ddown = transformer.grouped_gradient %rows, %hidden by %begins {transformer.layer = 0 : i64, transformer.pass = #backward} : !r, !h, !b -> !down
  %all:5 = transformer.expert_rounds silu %x, %c, %p gate %gate up %up down %down from %first of 8 rows 12 slots %s, %places of %ranks last %last over ["ep"] of %dy : !x to %dx, %dp, %dgate, %dup, %ddown {transformer.layer = 0 : i64, transformer.pass = #backward}
    : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x, !p, !up, !up, !down -> !x, !p, !up, !up, !down
  transformer.accumulate gradient "gate", %all#2 {transformer.layer = 0 : i64, transformer.pass = #backward} : !up
  transformer.accumulate gradient "up", %all#3 {transformer.layer = 0 : i64, transformer.pass = #backward} : !up
  transformer.accumulate gradient "down", %all#4 {transformer.layer = 0 : i64, transformer.pass = #backward} : !down
  return
}
func.func @update() {
  return
}
}
