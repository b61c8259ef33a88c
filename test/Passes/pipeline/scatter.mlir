// RUN: meshwork-opt %s -pipeline-cut-stages="axis=pp microbatches=4 scatter=tp machine={name=\"two-nodes\" device=\"cpu\" ranks_per_node=2 flops.f32=1e11 memory.bandwidth=1e10 link.within_node.latency=1e-9 link.within_node.bandwidth=1e12 link.between_nodes.latency=1e-6 link.between_nodes.bandwidth=1e6}" | FileCheck %s
// RUN: meshwork-opt %s -pipeline-cut-stages="axis=pp microbatches=4 scatter=tp" | FileCheck %s --check-prefix=ALIKE
// RUN: meshwork-opt %s -pipeline-cut-stages="axis=pp microbatches=4" | FileCheck %s --check-prefix=ALIKE

// Both ranks along "tp" have %y, the sum; each sends half of it and gathers both
// behind the receive. Of %h each has its own, which goes whole. The gradient %g
// comes back in parts as well.
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
#backward = #transformer.pass<backward>
// CHECK: transformer.stage_list forward stage 0
// CHECK: %[[H:.*]] = transformer.map
// CHECK: %[[Y:.*]] = mesh.all_reduce %[[H]]
// CHECK: %[[PART:.*]] = mesh.slice %[[Y]] dim 0 over ["tp"] cause "activations between stages"
// CHECK-SAME: -> tensor<1x4x8xf32
// CHECK: mesh.send forward %[[H]], %[[PART]] over "pp" to 1
// CHECK: transformer.stage_list backward stage 0
// CHECK: %[[GPART:.*]] = mesh.receive backward
// CHECK: mesh.all_gather %[[GPART]] dim 0 over ["tp"] cause "gradients between stages"
// CHECK-SAME: transformer.pass = #transformer.pass<backward>
// CHECK: transformer.stage_list forward stage 1
// CHECK: %[[R:.*]]:2 = mesh.receive forward
// CHECK: %[[WHOLE:.*]] = mesh.all_gather %[[R]]#1 dim 0 over ["tp"]
// CHECK: transformer.map ins(%[[R]]#0, %[[WHOLE]]
// CHECK: mesh.slice
// CHECK-NEXT: mesh.send backward

// Links between stages that are no slower than those between their ranks.
// ALIKE-NOT: mesh.slice
// ALIKE-NOT: mesh.all_gather
module attributes {mesh.mesh = #mesh.mesh<"pp"=2, "tp"=2>} {
func.func @microbatch(%tokens: tensor<2x4xi32, #bs>, %targets: tensor<2x4xi32, #bs>) {
  %table = transformer.parameter "table" init <constant, 1.0> : tensor<8x8xf32, #ve>
  %b = transformer.parameter "b" layer 0 init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{"tp"}]>]} : tensor<8xf32, #transformer.dims<embed>>
  %x = transformer.embedding %table, %tokens : tensor<8x8xf32, #ve>, tensor<2x4xi32, #bs> -> tensor<2x4x8xf32, #bse>
  %h = transformer.map ins(%x, %b : tensor<2x4x8xf32, #bse>, tensor<8xf32, #transformer.dims<embed>>) {transformer.layer = 0 : i64} -> tensor<2x4x8xf32, #bse> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %p, %q : f32
    transformer.yield %r : f32
  }
  %y = mesh.all_reduce %h sum over ["tp"] cause "h" {transformer.layer = 0 : i64} : tensor<2x4x8xf32, #bse> -> tensor<2x4x8xf32, #bse>
  %c = transformer.parameter "c" layer 1 init <constant, 1.0> : tensor<8xf32, #transformer.dims<embed>>
  %z = transformer.map ins(%h, %y, %c : tensor<2x4x8xf32, #bse>, tensor<2x4x8xf32, #bse>, tensor<8xf32, #transformer.dims<embed>>) {transformer.layer = 1 : i64} -> tensor<2x4x8xf32, #bse> {
  ^bb0(%p: f32, %q: f32, %s: f32):
    %r = arith.mulf %p, %q : f32
    %t = arith.mulf %r, %s : f32
    transformer.yield %t : f32
  }
  %loss = transformer.reduce add %z over <batch, sequence, embed> {transformer.head} : tensor<2x4x8xf32, #bse> -> tensor<f32>
  %g = transformer.map ins(%y : tensor<2x4x8xf32, #bse>) {transformer.layer = 1 : i64, transformer.pass = #backward} -> tensor<2x4x8xf32, #bse> {
  ^bb0(%p: f32):
    transformer.yield %p : f32
  }
  %dt = transformer.embedding_grad %tokens, %g {transformer.layer = 0 : i64, transformer.pass = #backward} : tensor<2x4xi32, #bs>, tensor<2x4x8xf32, #bse> -> tensor<8x8xf32, #ve>
  transformer.accumulate gradient "table", %dt {transformer.layer = 0 : i64, transformer.pass = #backward} : tensor<8x8xf32, #ve>
  transformer.accumulate loss "", %loss {transformer.pass = #backward} : tensor<f32>
  return
}
func.func @update() {
  %gt = transformer.state gradient "table" : tensor<8x8xf32, #ve>
  %l = transformer.state loss "" : tensor<f32>
  transformer.assign loss "", %l : tensor<f32>
  %s = transformer.reduce add %gt over <vocab, embed> : tensor<8x8xf32, #ve> -> tensor<f32>
  %norm = transformer.map ins(%s : tensor<f32>) -> tensor<f32> {
  ^bb0(%p: f32):
    %root = math.sqrt %p : f32
    transformer.yield %root : f32
  }
  transformer.assign grad_norm "", %norm : tensor<f32>
  return
}
}
