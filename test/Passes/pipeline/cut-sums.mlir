// RUN: meshwork-opt %s -pipeline-cut-stages="axis=pp" | FileCheck %s

// The terms of the norm's sum stand in two maps of two. A rank with one or two of
// them adds up its own in one map, wherever the whole model has them. A map that
// does more than add is a term.
#e = #transformer.dims<embed>
!x = tensor<8xf32, #e>
!f = tensor<f32>
// CHECK: func.func @update
// CHECK: %[[B:.*]] = transformer.reduce
// CHECK: %[[C:.*]] = transformer.reduce
// CHECK: %[[TWICE:.*]] = transformer.map ins(%[[C]] : tensor<f32>)
// CHECK: arith.mulf
// CHECK: %[[OWN:.*]] = transformer.map ins(%[[B]], %[[TWICE]] : tensor<f32>, tensor<f32>)
// CHECK: %[[ZERO:.*]] = arith.constant 0.0
// CHECK-NEXT: %[[FIRST:.*]] = arith.addf %[[ZERO]],
// CHECK-NEXT: arith.addf %[[FIRST]],
// CHECK-NEXT: transformer.yield
// CHECK: mesh.all_reduce %[[OWN]] sum over ["pp"] cause "gradient norm"
// CHECK: func.func @update
// CHECK: %[[D:.*]] = transformer.reduce
// CHECK-NEXT: %[[OWN:.*]] = transformer.map ins(%[[D]] : tensor<f32>)
// CHECK: mesh.all_reduce %[[OWN]] sum over ["pp"] cause "gradient norm"
module attributes {mesh.mesh = #mesh.mesh<"pp"=2>} {
func.func @microbatch(%tokens: tensor<2xi32, #transformer.dims<batch>>, %targets: tensor<2xi32, #transformer.dims<batch>>) {
  %w0 = transformer.parameter "w.0" layer 0 init <constant, 1.0> : !x
  %v0 = transformer.parameter "v.0" layer 0 init <constant, 1.0> : !x
  %w1 = transformer.parameter "w.1" layer 1 init <constant, 1.0> : !x
  %y = transformer.contract "e,e->e" %w0, %v0 {transformer.layer = 0 : i64} : !x, !x -> !x
  %z = transformer.contract "e,e->e" %y, %w1 {transformer.layer = 1 : i64} : !x, !x -> !x
  %loss = transformer.reduce add %z over <embed> {transformer.head} : !x -> !f
  %g = transformer.contract "e,e->e" %y, %z {transformer.layer = 1 : i64, transformer.pass = #transformer.pass<backward>} : !x, !x -> !x
  transformer.accumulate gradient "w.1", %g {transformer.layer = 1 : i64, transformer.pass = #transformer.pass<backward>} : !x
  %h = transformer.contract "e,e->e" %g, %v0 {transformer.layer = 0 : i64, transformer.pass = #transformer.pass<backward>} : !x, !x -> !x
  transformer.accumulate gradient "w.0", %h {transformer.layer = 0 : i64, transformer.pass = #transformer.pass<backward>} : !x
  transformer.accumulate gradient "v.0", %h {transformer.layer = 0 : i64, transformer.pass = #transformer.pass<backward>} : !x
  transformer.accumulate loss "", %loss {transformer.pass = #transformer.pass<backward>} : !f
  return
}
func.func @update() {
  %ga = transformer.state gradient "w.1" : !x
  %gb = transformer.state gradient "w.0" : !x
  %gc = transformer.state gradient "v.0" : !x
  %l = transformer.state loss "" : !f
  transformer.assign loss "", %l : !f
  %a = transformer.reduce add %ga over #e : !x -> !f
  %b = transformer.reduce add %gb over #e : !x -> !f
  %c = transformer.reduce add %gc over #e : !x -> !f
  %twice = transformer.map ins(%c : !f) -> !f {
  ^bb0(%p: f32):
    %q = arith.mulf %p, %p : f32
    transformer.yield %q : f32
  }
  %first = transformer.map ins(%a, %b : !f, !f) -> !f {
  ^bb0(%p: f32, %q: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.addf %zero, %p : f32
    %t = arith.addf %s, %q : f32
    transformer.yield %t : f32
  }
  %second = transformer.map ins(%twice : !f) -> !f {
  ^bb0(%p: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.addf %zero, %p : f32
    transformer.yield %s : f32
  }
  %sum = transformer.map ins(%first, %second : !f, !f) -> !f {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    transformer.yield %s : f32
  }
  %norm = transformer.map ins(%sum : !f) -> !f {
  ^bb0(%p: f32):
    %s = math.sqrt %p : f32
    transformer.yield %s : f32
  }
  transformer.assign grad_norm "", %norm : !f
  transformer.assign master "w.0", %gb : !x
  transformer.assign master "v.0", %gc : !x
  transformer.assign master "w.1", %ga : !x
  return
}
}
