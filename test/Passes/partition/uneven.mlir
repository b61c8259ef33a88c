// RUN: meshwork-opt %s -split-input-file -partition-localize | FileCheck %s
// Sizes that the axes do not divide: what lies behind the end of a rank's part
// is masked where it would reach a result, and nowhere else.

// Padding of weights is zero, so is what comes of it through silu: the sum over
// ffn needs no mask. exp(0) is not zero.
#se = #transformer.dims<sequence, embed>
#ef = #transformer.dims<embed, ffn>
#sf = #transformer.dims<sequence, ffn>
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%x: tensor<4x8xf32, #se> {mesh.sharding = #mesh.sharding<[{}, {}]>}) {
  // CHECK: transformer.parameter {{.*}} of [8, 11] {{.*}} : tensor<8x6xf32
  %w = transformer.parameter "w" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {"tp"}]>], mesh.stored = #mesh.sharding<[{}, {"tp"}]>} : tensor<8x11xf32, #ef>
  // CHECK: transformer.contract "se,ef->sf"
  %h = transformer.contract "se,ef->sf" %x, %w {mesh.shardings = [#mesh.sharding<[{}, {"tp"}]>]} : tensor<4x8xf32, #se>, tensor<8x11xf32, #ef> -> tensor<4x11xf32, #sf>
  // CHECK: %[[SILU:.*]] = transformer.map
  %a = transformer.map ins(%h : tensor<4x11xf32, #sf>) {mesh.shardings = [#mesh.sharding<[{}, {"tp"}]>]} -> tensor<4x11xf32, #sf> {
  ^bb0(%v: f32):
    %one = arith.constant 1.0 : f32
    %n = arith.negf %v : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %s = arith.divf %v, %d : f32
    transformer.yield %s : f32
  }
  // CHECK-NOT: mesh.extent
  // CHECK: transformer.contract "sf,ef->se" %[[SILU]],
  %y = transformer.contract "sf,ef->se" %a, %w {mesh.shardings = [#mesh.sharding<[{}, {}], partial = sum {"tp"}>]} : tensor<4x11xf32, #sf>, tensor<8x11xf32, #ef> -> tensor<4x8xf32, #se>
  // CHECK: %[[EXP:.*]] = transformer.map ins(%[[SILU]]
  %b = transformer.map ins(%a : tensor<4x11xf32, #sf>) {mesh.shardings = [#mesh.sharding<[{}, {"tp"}]>]} -> tensor<4x11xf32, #sf> {
  ^bb0(%v: f32):
    %e = math.exp %v : f32
    transformer.yield %e : f32
  }
  // CHECK: %[[END:.*]] = mesh.extent over ["tp"] of 11 : tensor<i32>
  // CHECK: %[[MASKED:.*]] = transformer.map ins(%[[EXP]], %[[END]]
  // CHECK: transformer.index "ffn"
  // CHECK: arith.cmpi slt
  // CHECK: arith.select
  // CHECK: transformer.reduce add %[[MASKED]]
  %r = transformer.reduce add %b over <ffn> {mesh.shardings = [#mesh.sharding<[{}], partial = sum {"tp"}>]} : tensor<4x11xf32, #sf> -> tensor<4xf32, #transformer.dims<sequence>>
  // A maximum is not zero where all are below.
  // CHECK: %[[LOW:.*]] = transformer.map ins(%[[SILU]],
  // CHECK: arith.constant -3.40282347E+38
  // CHECK: transformer.reduce max %[[LOW]]
  %m = transformer.reduce max %a over <ffn> {mesh.shardings = [#mesh.sharding<[{}], partial = max {"tp"}>]} : tensor<4x11xf32, #sf> -> tensor<4xf32, #transformer.dims<sequence>>
  return
}
}

// -----

// What one masks for a reader, others share; a gather drops padding.
#s = #transformer.dims<sequence>
module attributes {mesh.mesh = #mesh.mesh<"tp"=4>} {
// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%x: tensor<9xf32, #s> {mesh.sharding = #mesh.sharding<[{}]>}) {
  // CHECK: %[[PART:.*]] = mesh.slice %{{.*}} : tensor<9xf32, {{.*}}> -> tensor<3xf32
  %p = mesh.reshard %x from <[{}]> to <[{"tp"}]> cause "a" {mesh.shardings = [#mesh.sharding<[{"tp"}]>]} : tensor<9xf32, #s>
  // CHECK: transformer.reduce add %[[PART]]
  %r = transformer.reduce add %p over <sequence> {mesh.shardings = [#mesh.sharding<[], partial = sum {"tp"}>]} : tensor<9xf32, #s> -> tensor<f32>
  // CHECK: %[[EXP:.*]] = transformer.map
  %e = transformer.map ins(%p : tensor<9xf32, #s>) {mesh.shardings = [#mesh.sharding<[{"tp"}]>]} -> tensor<9xf32, #s> {
  ^bb0(%v: f32):
    %0 = math.exp %v : f32
    transformer.yield %0 : f32
  }
  // CHECK: %[[MASKED:.*]] = transformer.map ins(%[[EXP]],
  // CHECK: transformer.reduce add %[[MASKED]]
  // CHECK: transformer.reduce add %[[MASKED]]
  %a = transformer.reduce add %e over <sequence> {mesh.shardings = [#mesh.sharding<[], partial = sum {"tp"}>]} : tensor<9xf32, #s> -> tensor<f32>
  %b = transformer.reduce add %e over <sequence> {mesh.shardings = [#mesh.sharding<[], partial = sum {"tp"}>]} : tensor<9xf32, #s> -> tensor<f32>
  // CHECK: %[[WHOLE:.*]] = mesh.all_gather %[[EXP]] {{.*}} -> tensor<9xf32
  %w = mesh.reshard %e from <[{"tp"}]> to <[{}]> cause "a" {mesh.shardings = [#mesh.sharding<[{}]>]} : tensor<9xf32, #s>
  // CHECK: transformer.reduce add %[[WHOLE]]
  %c = transformer.reduce add %w over <sequence> {mesh.shardings = [#mesh.sharding<[]>]} : tensor<9xf32, #s> -> tensor<f32>
  return
}
}

// -----

// 257 over 2 and 2 are 129, then 65: row 64 of the first rank has the number of
// the third rank's first one. The gradient of the table leaves it out.
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
module attributes {mesh.mesh = #mesh.mesh<"x"=2, "y"=2>} {
// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%t: tensor<4x8xi32, #bs> {mesh.sharding = #mesh.sharding<[{}, {}]>}, %g: tensor<4x8x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{}, {}, {}]>}) {
  // CHECK: %[[FIRST:.*]] = mesh.coordinate over ["x", "y"] of 257 : tensor<i32>
  // CHECK: %[[GRADIENT:.*]] = transformer.embedding_grad {{.*}} from %[[FIRST]] {{.*}} -> tensor<65x8xf32
  %d = transformer.embedding_grad %t, %g {mesh.shardings = [#mesh.sharding<[{"x", "y"}, {}]>]} : tensor<4x8xi32, #bs>, tensor<4x8x8xf32, #bse> -> tensor<257x8xf32, #ve>
  // CHECK: %[[END:.*]] = mesh.extent over ["x", "y"] of 257 : tensor<i32>
  // CHECK: %[[MASKED:.*]] = transformer.map ins(%[[GRADIENT]], %[[END]]
  // CHECK: transformer.accumulate gradient "w", %[[MASKED]]
  transformer.accumulate gradient "w", %d {mesh.stored = #mesh.sharding<[{"x", "y"}, {}]>} : tensor<257x8xf32, #ve>
  return
}
}

// -----

// A comparison of zeros is known: the sign of padding is zero, whether it is below one is not.
#ef = #transformer.dims<embed, ffn>
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
// CHECK-LABEL: func.func @microbatch
func.func @microbatch() {
  %w = transformer.parameter "w" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {"tp"}]>], mesh.stored = #mesh.sharding<[{}, {"tp"}]>} : tensor<8x11xf32, #ef>
  // A choice between two numbers by what is behind the end is not one of theirs.
  // CHECK: %[[UNKNOWN:.*]] = transformer.map
  // CHECK: %[[CHOICE:.*]] = transformer.map ins(%[[UNKNOWN]]
  %u = transformer.map ins(%w : tensor<8x11xf32, #ef>) {mesh.shardings = [#mesh.sharding<[{}, {"tp"}]>]} -> tensor<8x11xf32, #ef> {
  ^bb0(%v: f32):
    %e = math.tanh %v : f32
    %i = transformer.index "ffn" : i32
    %f = arith.sitofp %i : i32 to f32
    %s = arith.addf %e, %f : f32
    transformer.yield %s : f32
  }
  %c = transformer.map ins(%u : tensor<8x11xf32, #ef>) {mesh.shardings = [#mesh.sharding<[{}, {"tp"}]>]} -> tensor<8x11xf32, #ef> {
  ^bb0(%v: f32):
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %above = arith.cmpf ogt, %v, %zero : f32
    %step = arith.select %above, %one, %zero : f32
    transformer.yield %step : f32
  }
  // CHECK: %[[OWN:.*]] = transformer.map ins(%[[CHOICE]],
  // CHECK: transformer.reduce add %[[OWN]]
  %q = transformer.reduce add %c over <ffn> {mesh.shardings = [#mesh.sharding<[{}], partial = sum {"tp"}>]} : tensor<8x11xf32, #ef> -> tensor<8xf32, #transformer.dims<embed>>
  // CHECK: %[[MAP:.*]]:2 = transformer.map
  %a:2 = transformer.map ins(%w : tensor<8x11xf32, #ef>) {mesh.shardings = [#mesh.sharding<[{}, {"tp"}]>, #mesh.sharding<[{}, {"tp"}]>]} -> tensor<8x11xf32, #ef>, tensor<8x11xf32, #ef> {
  ^bb0(%v: f32):
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %minus = arith.constant -1.0 : f32
    %above = arith.cmpf ogt, %v, %zero : f32
    %below = arith.cmpf olt, %v, %zero : f32
    %negative = arith.select %below, %minus, %zero : f32
    %sign = arith.select %above, %one, %negative : f32
    %small = arith.cmpf olt, %v, %one : f32
    %flag = arith.select %small, %one, %zero : f32
    transformer.yield %sign, %flag : f32, f32
  }
  // CHECK: transformer.reduce add %[[MAP]]#0
  %r = transformer.reduce add %a#0 over <ffn> {mesh.shardings = [#mesh.sharding<[{}], partial = sum {"tp"}>]} : tensor<8x11xf32, #ef> -> tensor<8xf32, #transformer.dims<embed>>
  // CHECK: %[[MASKED:.*]] = transformer.map ins(%[[MAP]]#1,
  // CHECK: transformer.reduce add %[[MASKED]]
  %s = transformer.reduce add %a#1 over <ffn> {mesh.shardings = [#mesh.sharding<[{}], partial = sum {"tp"}>]} : tensor<8x11xf32, #ef> -> tensor<8xf32, #transformer.dims<embed>>
  return
}
}
