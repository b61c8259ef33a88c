// RUN: meshwork-opt %s -split-input-file -partition-insert-reshards | FileCheck %s

#bse = #transformer.dims<batch, sequence, embed>
#bsf = #transformer.dims<batch, sequence, ffn>
#fe = #transformer.dims<ffn, embed>
#ef = #transformer.dims<embed, ffn>

// Column, then row, then ops that a partial sum must not reach: one reduction,
// which both readers share. Where shardings fit, nothing is inserted.
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
func.func @microbatch(%x: tensor<4x8x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{}, {}, {}]>}) {
  %up = transformer.parameter "up" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp"}, {}]>} : tensor<16x8xf32, #fe>
  %down = transformer.parameter "down" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {"tp"}]>], mesh.stored = #mesh.sharding<[{}, {"tp"}]>} : tensor<8x16xf32, #ef>
  // CHECK-NOT: mesh.reshard
  // CHECK: %[[H:.*]] = transformer.contract "bse,fe->bsf"
  %h = transformer.contract "bse,fe->bsf" %x, %up {mesh.shardings = [#mesh.sharding<[{}, {}, {"tp"}]>]} : tensor<4x8x8xf32, #bse>, tensor<16x8xf32, #fe> -> tensor<4x8x16xf32, #bsf>
  // CHECK-NEXT: %[[Y:.*]] = transformer.contract "bsf,ef->bse" %[[H]], {{.*}}[#mesh.sharding<[{}, {}, {}], partial = sum {"tp"}>]
  %y = transformer.contract "bsf,ef->bse" %h, %down {mesh.shardings = [#mesh.sharding<[{}, {}, {}]>]} : tensor<4x8x16xf32, #bsf>, tensor<8x16xf32, #ef> -> tensor<4x8x8xf32, #bse>
  // CHECK-NEXT: %[[R:.*]] = mesh.reshard %[[Y]] from <[{}, {}, {}], partial = sum {"tp"}> to <[{}, {}, {}]> cause "down 2" why "sums over ffn, which tp splits"
  // CHECK: transformer.map ins(%[[R]]
  %a = transformer.map ins(%y : tensor<4x8x8xf32, #bse>) {mesh.shardings = [#mesh.sharding<[{}, {}, {}]>]} -> tensor<4x8x8xf32, #bse> {
  ^bb0(%v: f32):
    %e = math.exp %v : f32
    transformer.yield %e : f32
  }
  // CHECK-NOT: mesh.reshard
  // CHECK: transformer.map ins(%[[R]]
  %b = transformer.map ins(%y : tensor<4x8x8xf32, #bse>) {mesh.shardings = [#mesh.sharding<[{}, {}, {}]>]} -> tensor<4x8x8xf32, #bse> {
  ^bb0(%v: f32):
    %e = math.tanh %v : f32
    transformer.yield %e : f32
  }
  return
}
func.func @update() {
  return
}
}

// -----

// Partial sums go through what is linear, and into the state: gradients of all
// microbatches are summed over "dp" once, in the update. The norm's, which is
// squared there, too.
#bse = #transformer.dims<batch, sequence, embed>
#e = #transformer.dims<embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch(%x: tensor<4x8x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{"dp"}, {}, {}]>}) {
  // CHECK: %[[G:.*]] = transformer.reduce {{.*}}partial = sum {"dp"}
  %g = transformer.reduce add %x over #transformer.dims<batch, sequence> {mesh.shardings = [#mesh.sharding<[{}]>]} : tensor<4x8x8xf32, #bse> -> tensor<8xf32, #e>
  // CHECK: %[[H:.*]] = transformer.map ins(%[[G]] {{.*}}partial = sum {"dp"}
  %h = transformer.map ins(%g : tensor<8xf32, #e>) {mesh.shardings = [#mesh.sharding<[{}]>]} -> tensor<8xf32, #e> {
  ^bb0(%v: f32):
    %c = arith.constant 0.5 : f32
    %m = arith.mulf %v, %c : f32
    transformer.yield %m : f32
  }
  // CHECK: transformer.accumulate gradient "w", %[[H]] {mesh.stored = #mesh.sharding<[{}], partial = sum {"dp"}>}
  transformer.accumulate gradient "w", %h {mesh.stored = #mesh.sharding<[{}]>} : tensor<8xf32, #e>
  return
}
// CHECK-LABEL: func.func @update
func.func @update() {
  // CHECK: %[[G:.*]] = transformer.state gradient "w" {{.*}}mesh.stored = #mesh.sharding<[{}], partial = sum {"dp"}>
  %g = transformer.state gradient "w" {mesh.shardings = [#mesh.sharding<[{"dp"}]>], mesh.stored = #mesh.sharding<[{}]>} : tensor<8xf32, #e>
  // CHECK: %[[S:.*]] = mesh.reshard %[[G]] from <[{}], partial = sum {"dp"}> to <[{"dp"}]> cause "w (gradient)" why "sums over batch, which dp splits"
  // CHECK: transformer.map ins(%[[S]]
  %q = transformer.map ins(%g : tensor<8xf32, #e>) {mesh.shardings = [#mesh.sharding<[{"dp"}]>]} -> tensor<8xf32, #e> {
  ^bb0(%v: f32):
    %m = arith.mulf %v, %v : f32
    transformer.yield %m : f32
  }
  // CHECK: %[[A:.*]] = mesh.reshard %{{.*}} from <[{"dp"}]> to <[{}]> cause "w (weight after the update)" why "is written where weight of w is stored whole over dp, its optimizer is split (zero.stage)" by ["zero.stage"]
  // CHECK: transformer.assign weight "w", %[[A]]
  transformer.assign weight "w", %q {mesh.stored = #mesh.sharding<[{}]>} : tensor<8xf32, #e>
  return
}
}

// -----

// A broadcast would make more to sum. (The gradient of a slice is larger, too,
// but goes on into the state.)
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
func.func @microbatch(%x: tensor<4x8x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{}, {}, {"tp"}]>}) {
  %g = transformer.reduce add %x over #transformer.dims<embed> {mesh.shardings = [#mesh.sharding<[{}, {}]>]} : tensor<4x8x8xf32, #bse> -> tensor<4x8xf32, #bs>
  // CHECK: %[[R:.*]] = mesh.reshard %{{.*}} from <[{}, {}], partial = sum {"tp"}> to <[{}, {}]> {{.*}} tensor<4x8xf32
  // CHECK: transformer.map ins(%[[R]]
  // CHECK-NOT: mesh.reshard
  %b = transformer.map ins(%g : tensor<4x8xf32, #bs>) {mesh.shardings = [#mesh.sharding<[{}, {}, {"tp"}]>]} -> tensor<4x8x8xf32, #bse> {
  ^bb0(%v: f32):
    transformer.yield %v : f32
  }
  return
}
func.func @update() {
  return
}
}

// -----

// A weight that is stored in parts is gathered for the forward and again for the
// backward pass, so that it is not kept between the two.
#bse = #transformer.dims<batch, sequence, embed>
#bsf = #transformer.dims<batch, sequence, ffn>
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch(%x: tensor<4x8x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{"dp"}, {}, {}]>}) {
  // CHECK: %[[W:.*]] = transformer.parameter "w"
  %w = transformer.parameter "w" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {}]>], mesh.stored = #mesh.sharding<[{"dp"}, {}]>} : tensor<16x8xf32, #fe>
  // CHECK: %[[F:.*]] = mesh.reshard %[[W]] from <[{"dp"}, {}]> to <[{}, {}]> cause "w" why "is stored over dp (zero.stage) and computed with whole" by ["zero.stage"] {mesh.shardings = [#mesh.sharding<[{}, {}]>]} :
  // CHECK: contract "bse,fe->bsf" %{{.*}}, %[[F]]
  %h = transformer.contract "bse,fe->bsf" %x, %w {mesh.shardings = [#mesh.sharding<[{"dp"}, {}, {}]>]} : tensor<4x8x8xf32, #bse>, tensor<16x8xf32, #fe> -> tensor<4x8x16xf32, #bsf>
  // CHECK: %[[B:.*]] = mesh.reshard %[[W]] {{.*}}, transformer.pass = #transformer.pass<backward>}
  // CHECK: contract "bsf,fe->bse" %{{.*}}, %[[B]]
  %dx = transformer.contract "bsf,fe->bse" %h, %w {transformer.pass = #transformer.pass<backward>, mesh.shardings = [#mesh.sharding<[{"dp"}, {}, {}]>]} : tensor<4x8x16xf32, #bsf>, tensor<16x8xf32, #fe> -> tensor<4x8x8xf32, #bse>
  // Its gradient is summed over "dp" where it is stored in parts too.
  // CHECK: mesh.reshard {{.*}} from <[{}, {}], partial = sum {"dp"}> to <[{"dp"}, {}]> cause "w (gradient of a microbatch)" why "sums over batch, which dp splits; gradient of w is stored over dp (zero.stage)" by ["zero.stage"]
  %dw = transformer.contract "bsf,bse->fe" %h, %x {transformer.pass = #transformer.pass<backward>, mesh.shardings = [#mesh.sharding<[{}, {}]>]} : tensor<4x8x16xf32, #bsf>, tensor<4x8x8xf32, #bse> -> tensor<16x8xf32, #fe>
  transformer.accumulate gradient "w", %dw {transformer.pass = #transformer.pass<backward>, mesh.stored = #mesh.sharding<[{"dp"}, {}]>} : tensor<16x8xf32, #fe>
  return
}
func.func @update() {
  return
}
}

// -----

// A mask is drawn for the samples of the rank, whatever is given "dp" instead.
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch(%tokens: tensor<4x8xi32, #bs> {mesh.sharding = #mesh.sharding<[{"dp"}, {}]>}, %x: tensor<4x8x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{}, {}, {"dp"}]>}) {
  %seed = transformer.step_input seed {mesh.shardings = [#mesh.sharding<[]>]} : tensor<i32>
  // CHECK: %[[X:.*]] = mesh.reshard %{{.*}} from <[{}, {}, {"dp"}]> to <[{"dp"}, {}, {}]>
  // CHECK: transformer.map ins(%[[X]], {{.*}}[#mesh.sharding<[{"dp"}, {}, {}]>]
  %y = transformer.map ins(%x, %seed, %seed, %seed : tensor<4x8x8xf32, #bse>, tensor<i32>, tensor<i32>, tensor<i32>) {mesh.shardings = [#mesh.sharding<[{}, {}, {"dp"}]>]} -> tensor<4x8x8xf32, #bse> {
  ^bb0(%v: f32, %a: i32, %b: i32, %c: i32):
    %k = transformer.dropout_mask %a, %b, %c stream 7 rate 1.0e-1
    %m = arith.mulf %v, %k : f32
    transformer.yield %m : f32
  }
  return
}
func.func @update() {
  return
}
}
