// RUN: meshwork-opt %s -pipeline-cut-stages="axis=pp microbatches=4" | FileCheck %s
// RUN: meshwork-opt %s -pipeline-cut-stages="axis=pp microbatches=4 schedule=zb-h1" | FileCheck %s --check-prefix=SPLIT
// RUN: not meshwork-opt %s -pipeline-cut-stages="axis=pp layers=1,2" 2>&1 | FileCheck %s --check-prefix=LAYERS
// LAYERS: has 2 stages with 3 layers in all, expected 2 with 2, like [1, 1]

// Layer 0 on one rank, layer 1 on the other. Ops without a layer follow their
// operands: the embedding, its gradient, the loss. %scale has no operands, so
// each rank makes it. %y goes forward and is kept, %g0 comes back.
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#ef = #transformer.dims<embed, ffn>
#bsf = #transformer.dims<batch, sequence, ffn>
#ve = #transformer.dims<vocab, embed>
#backward = #transformer.pass<backward>
// Each rank has the order of its actions, transfers included.
// CHECK: module
// CHECK-NEXT: module attributes
// CHECK-SAME: schedule.action_table = #schedule.action_table<[0F0, 0SEND_F0, 0F1, 0SEND_F1, 0RECV_B0, 0B0,
// CHECK: func.func @microbatch
// CHECK: transformer.stage_list forward stage 0
// CHECK: transformer.embedding
// CHECK: %[[Y:.*]] = transformer.contract "bse,ef->bsf"
// CHECK: mesh.send forward %[[Y]] over "pp" to 1
// CHECK-NEXT: transformer.stage_list backward stage 0
// CHECK-NEXT: %[[G:.*]] = mesh.receive backward over "pp" from 1
// CHECK: transformer.contract "bse,bsf->ef" %{{.*}}, %[[G]]
// CHECK-NEXT: transformer.accumulate gradient "w.0"
// CHECK: transformer.embedding_grad
// CHECK: return
// Neither the other rank's state nor its share of the norm; both sums go over the axis.
// CHECK: func.func @update
// CHECK-NOT: w.1
// CHECK: mesh.all_reduce %{{.*}} sum over ["pp"] cause "loss"
// CHECK-NOT: w.1
// CHECK: mesh.all_reduce %{{.*}} sum over ["pp"] cause "gradient norm"
// CHECK: math.sqrt
// CHECK: return
// CHECK: module
// CHECK: transformer.stage_list forward stage 1
// CHECK-NEXT: %[[R:.*]] = mesh.receive forward over "pp" from 0
// CHECK: transformer.stage_list backward stage 1
// CHECK: transformer.contract "bsf,bsf->bsf" %[[R]]
// CHECK: mesh.send backward %{{.*}} over "pp" to 0
// CHECK: func.func @update
// CHECK-NOT: w.0

// With W in the table the gradients of weights are lists of their own.
// SPLIT: transformer.stage_list input_grad stage 0
// SPLIT-NOT: "bse,bsf->ef"
// SPLIT: transformer.stage_list weight_grad stage 0
// SPLIT: transformer.contract "bse,bsf->ef"
// SPLIT-NEXT: transformer.accumulate gradient "w.0"
module attributes {mesh.mesh = #mesh.mesh<"pp"=2>} {
func.func @microbatch(%tokens: tensor<2x4xi32, #bs>, %targets: tensor<2x4xi32, #bs>) {
  %table = transformer.parameter "table" init <constant, 1.0> : tensor<8x8xf32, #ve>
  %w0 = transformer.parameter "w.0" layer 0 init <constant, 1.0> : tensor<8x8xf32, #ef>
  %w1 = transformer.parameter "w.1" layer 1 init <constant, 1.0> : tensor<8xf32, #transformer.dims<ffn>>
  %x = transformer.embedding %table, %tokens : tensor<8x8xf32, #ve>, tensor<2x4xi32, #bs> -> tensor<2x4x8xf32, #bse>
  %y = transformer.contract "bse,ef->bsf" %x, %w0 {transformer.layer = 0 : i64} : tensor<2x4x8xf32, #bse>, tensor<8x8xf32, #ef> -> tensor<2x4x8xf32, #bsf>
  %z = transformer.map ins(%y, %w1 : tensor<2x4x8xf32, #bsf>, tensor<8xf32, #transformer.dims<ffn>>) {transformer.layer = 1 : i64} -> tensor<2x4x8xf32, #bsf> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    transformer.yield %c : f32
  }
  %loss = transformer.reduce add %z over <batch, sequence, ffn> {transformer.head} : tensor<2x4x8xf32, #bsf> -> tensor<f32>
  %g0 = transformer.contract "bsf,bsf->bsf" %y, %z {transformer.layer = 1 : i64, transformer.pass = #backward} : tensor<2x4x8xf32, #bsf>, tensor<2x4x8xf32, #bsf> -> tensor<2x4x8xf32, #bsf>
  %d1 = transformer.reduce add %g0 over <batch, sequence> {transformer.layer = 1 : i64, transformer.pass = #backward} : tensor<2x4x8xf32, #bsf> -> tensor<8xf32, #transformer.dims<ffn>>
  transformer.accumulate gradient "w.1", %d1 {transformer.layer = 1 : i64, transformer.pass = #backward} : tensor<8xf32, #transformer.dims<ffn>>
  %d0 = transformer.contract "bse,bsf->ef" %x, %g0 {transformer.layer = 0 : i64, transformer.pass = #backward} : tensor<2x4x8xf32, #bse>, tensor<2x4x8xf32, #bsf> -> tensor<8x8xf32, #ef>
  transformer.accumulate gradient "w.0", %d0 {transformer.layer = 0 : i64, transformer.pass = #backward} : tensor<8x8xf32, #ef>
  %dx = transformer.contract "bsf,ef->bse" %g0, %w0 {transformer.layer = 0 : i64, transformer.pass = #backward} : tensor<2x4x8xf32, #bsf>, tensor<8x8xf32, #ef> -> tensor<2x4x8xf32, #bse>
  %dt = transformer.embedding_grad %tokens, %dx {transformer.pass = #backward} : tensor<2x4xi32, #bs>, tensor<2x4x8xf32, #bse> -> tensor<8x8xf32, #ve>
  transformer.accumulate gradient "table", %dt {transformer.pass = #backward} : tensor<8x8xf32, #ve>
  transformer.accumulate loss "", %loss {transformer.pass = #backward} : tensor<f32>
  return
}
func.func @update() {
  %gt = transformer.state gradient "table" : tensor<8x8xf32, #ve>
  %g0 = transformer.state gradient "w.0" : tensor<8x8xf32, #ef>
  %g1 = transformer.state gradient "w.1" : tensor<8xf32, #transformer.dims<ffn>>
  %l = transformer.state loss "" : tensor<f32>
  transformer.assign loss "", %l : tensor<f32>
  %a = transformer.reduce add %gt over #ve : tensor<8x8xf32, #ve> -> tensor<f32>
  %b = transformer.reduce add %g0 over #ef : tensor<8x8xf32, #ef> -> tensor<f32>
  %c = transformer.reduce add %g1 over <ffn> : tensor<8xf32, #transformer.dims<ffn>> -> tensor<f32>
  %sum = transformer.map ins(%a, %b, %c : tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.addf %p, %q : f32
    %t = arith.addf %s, %r : f32
    transformer.yield %t : f32
  }
  %norm = transformer.map ins(%sum : tensor<f32>) -> tensor<f32> {
  ^bb0(%p: f32):
    %s = math.sqrt %p : f32
    transformer.yield %s : f32
  }
  transformer.assign grad_norm "", %norm : tensor<f32>
  transformer.assign master "w.0", %g0 : tensor<8x8xf32, #ef>
  transformer.assign master "w.1", %g1 : tensor<8xf32, #transformer.dims<ffn>>
  return
}
}
