// RUN: meshwork-opt %s -split-input-file -partition-localize | FileCheck %s

// Each reshard becomes the steps that send least; types become one rank's, and
// shardings go.
#xy = #transformer.dims<x, y>
module attributes {mesh.mesh = #mesh.mesh<"a"=2, "b"=2>} {
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32, #{{[a-z_]*}}>, %[[SUM:.*]]: tensor<4x8xf32, #{{[a-z_]*}}>, %[[MAX:.*]]: tensor<4x8xf32
func.func @microbatch(%x: tensor<8x8xf32, #xy> {mesh.sharding = #mesh.sharding<[{"a"}, {}]>},
                      %sum: tensor<8x8xf32, #xy> {mesh.sharding = #mesh.sharding<[{"a"}, {}], partial = sum {"b"}>},
                      %max: tensor<8x8xf32, #xy> {mesh.sharding = #mesh.sharding<[{"a"}, {}], partial = max {"b"}>}) {
  // CHECK-NEXT: mesh.all_gather %[[X]] dim 0 over ["a"] cause "gather" : tensor<4x8xf32, {{.*}} -> tensor<8x8xf32
  %0 = mesh.reshard %x from <[{"a"}, {}]> to <[{}, {}]> cause "gather" {mesh.shardings = [#mesh.sharding<[{}, {}]>]} : tensor<8x8xf32, #xy>
  // CHECK-NEXT: mesh.all_to_all %[[X]] gather 0 split 1 over ["a"] cause "move" : tensor<4x8xf32, {{.*}} -> tensor<8x4xf32
  %1 = mesh.reshard %x from <[{"a"}, {}]> to <[{}, {"a"}]> cause "move" {mesh.shardings = [#mesh.sharding<[{}, {"a"}]>]} : tensor<8x8xf32, #xy>
  // CHECK-NEXT: mesh.slice %[[X]] dim 1 over ["b"] cause "cut" : tensor<4x8xf32, {{.*}} -> tensor<4x4xf32
  %2 = mesh.reshard %x from <[{"a"}, {}]> to <[{"a"}, {"b"}]> cause "cut" {mesh.shardings = [#mesh.sharding<[{"a"}, {"b"}]>]} : tensor<8x8xf32, #xy>
  // The other axis on the same dim: ranks exchange whole parts.
  // CHECK-NEXT: mesh.permute %[[X]] sources [0, 2, 1, 3] over ["a", "b"] cause "swap" : tensor<4x8xf32
  %3 = mesh.reshard %x from <[{"a"}, {}]> to <[{"b"}, {}]> cause "swap" {mesh.shardings = [#mesh.sharding<[{"b"}, {}]>]} : tensor<8x8xf32, #xy>
  // CHECK-NEXT: mesh.all_reduce %[[SUM]] sum over ["b"] cause "sum" {transformer.pass = #transformer.pass<backward>} : tensor<4x8xf32
  %4 = mesh.reshard %sum from <[{"a"}, {}], partial = sum {"b"}> to <[{"a"}, {}]> cause "sum" {transformer.pass = #transformer.pass<backward>, mesh.shardings = [#mesh.sharding<[{"a"}, {}]>]} : tensor<8x8xf32, #xy>
  // CHECK-NEXT: mesh.all_reduce %[[MAX]] max over ["b"]
  %5 = mesh.reshard %max from <[{"a"}, {}], partial = max {"b"}> to <[{"a"}, {}]> cause "max" {mesh.shardings = [#mesh.sharding<[{"a"}, {}]>]} : tensor<8x8xf32, #xy>
  // CHECK-NEXT: mesh.reduce_scatter %[[SUM]] sum dim 1 over ["b"] cause "sum a part" : tensor<4x8xf32, {{.*}} -> tensor<4x4xf32
  %6 = mesh.reshard %sum from <[{"a"}, {}], partial = sum {"b"}> to <[{"a"}, {"b"}]> cause "sum a part" {mesh.shardings = [#mesh.sharding<[{"a"}, {"b"}]>]} : tensor<8x8xf32, #xy>
  // CHECK-NEXT: return
  return
}
}

// -----

// State keeps its sharding and its whole shape.
#fe = #transformer.dims<ffn, embed>
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
// CHECK-LABEL: func.func @update
func.func @update() {
  // CHECK: transformer.parameter "w" {{.*}} of [16, 8] {{.*}}mesh.stored = #mesh.sharding<[{"tp"}, {}]>} : tensor<8x8xf32
  %w = transformer.parameter "w" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp"}, {}]>} : tensor<16x8xf32, #fe>
  // CHECK: transformer.state master "w" {mesh.global_shape = array<i64: 16, 8>, {{.*}} : tensor<8x8xf32
  %m = transformer.state master "w" {mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp"}, {}]>} : tensor<16x8xf32, #fe>
  return
}
}

// -----

// Rows of a split table: lookups count from the rank's first one.
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%tokens: tensor<4x8xi32, #bs> {mesh.sharding = #mesh.sharding<[{}, {}]>}) {
  %t = transformer.parameter "t" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp"}, {}]>} : tensor<12x8xf32, #ve>
  // CHECK: %[[FIRST:.*]] = mesh.coordinate over ["tp"]
  // CHECK: transformer.embedding {{.*}} from %[[FIRST]]
  %x = transformer.embedding %t, %tokens {mesh.shardings = [#mesh.sharding<[{}, {}, {}], partial = sum {"tp"}>]} : tensor<12x8xf32, #ve>, tensor<4x8xi32, #bs> -> tensor<4x8x8xf32, #bse>
  return
}
}

// -----

// On one rank nothing changes but that shardings go.
#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=1>} {
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32, #{{.*}}>)
func.func @microbatch(%x: tensor<8xf32, #e> {mesh.sharding = #mesh.sharding<[{"dp"}]>}) {
  // CHECK-NEXT: transformer.map ins(%[[X]] : tensor<8xf32, #{{.*}}>) -> tensor<8xf32
  %y = mesh.reshard %x from <[{"dp"}]> to <[{}]> cause "no reason" {mesh.shardings = [#mesh.sharding<[{}]>]} : tensor<8xf32, #e>
  %z = transformer.map ins(%y : tensor<8xf32, #e>) {mesh.shardings = [#mesh.sharding<[{}]>]} -> tensor<8xf32, #e> {
  ^bb0(%v: f32):
    transformer.yield %v : f32
  }
  return
}
}

// -----

// A rank rounds its part of a weight as one that has all of it would.
#fe = #transformer.dims<ffn, embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "tp"=2>} {
// CHECK-LABEL: func.func @update
func.func @update() {
  %w = transformer.state master "w" {mesh.shardings = [#mesh.sharding<[{"tp"}, {"dp"}]>], mesh.stored = #mesh.sharding<[{"tp"}, {"dp"}]>} : tensor<16x8xf32, #fe>
  %seed = transformer.step_input seed {mesh.shardings = [#mesh.sharding<[]>]} : tensor<i32>
  // CHECK-DAG: %[[ROW:.*]] = mesh.coordinate over ["tp"]
  // CHECK-DAG: %[[COLUMN:.*]] = mesh.coordinate over ["dp"]
  // CHECK: transformer.map ins({{.*}}, %[[ROW]], %[[COLUMN]] :
  // CHECK-NEXT: ^bb0(%[[V:.*]]: f32, %[[S:.*]]: i32, %[[R:.*]]: i32, %[[C:.*]]: i32):
  // CHECK-NEXT: transformer.stochastic_round %[[V]] by %[[S]], %[[S]], %[[S]] stream 7 of [16, 8] at ["ffn", "embed"] %[[R]], %[[C]]
  %r = transformer.map ins(%w, %seed : tensor<16x8xf32, #fe>, tensor<i32>) {mesh.shardings = [#mesh.sharding<[{"tp"}, {"dp"}]>]} -> tensor<16x8xbf16, #fe> {
  ^bb0(%v: f32, %s: i32):
    %0 = transformer.stochastic_round %v by %s, %s, %s stream 7
    transformer.yield %0 : f32
  }
  return
}
}

// -----

// Two ranks of "tp" have the same heads, and so the same gradients.
#q = #transformer.dims<batch, sequence, heads, head_dim>
#lse = #transformer.dims<batch, heads, sequence>
!q = tensor<4x8x2x4xf32, #q>
!lse = tensor<4x2x8xf32, #lse>
#dp = #mesh.sharding<[{"dp"}, {}, {}, {}]>
#both = #mesh.sharding<[{"dp"}, {}, {"tp"}, {}]>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "tp"=2>} {
// CHECK-LABEL: func.func @duplicated
func.func @duplicated(%q: !q {mesh.sharding = #dp}, %lse: !lse {mesh.sharding = #mesh.sharding<[{"dp"}, {}, {}]>}) {
  // CHECK: transformer.attention_grad {{.*}} scale 5.000000e-01 duplicated :
  %dq, %dk, %dv = transformer.attention_grad %q, %q, %q, %q, %lse, %q causal scale 5.0e-1 {mesh.shardings = [#dp, #dp, #dp]} : !q, !q, !q, !q, !lse, !q -> !q, !q, !q
  return
}
// CHECK-LABEL: func.func @apart
func.func @apart(%q: !q {mesh.sharding = #both}, %lse: !lse {mesh.sharding = #mesh.sharding<[{"dp"}, {"tp"}, {}]>}) {
  // CHECK: transformer.attention_grad {{.*}} scale 5.000000e-01 :
  %dq, %dk, %dv = transformer.attention_grad %q, %q, %q, %q, %lse, %q causal scale 5.0e-1 {mesh.shardings = [#both, #both, #both]} : !q, !q, !q, !q, !lse, !q -> !q, !q, !q
  return
}
}

// -----

// Zigzag: five elements over two ranks are chunks of two, of which the last is
// empty; ranks have [0, 1] and [2, 3, 4]. The argument's split is for the
// runtime. What is entered is reordered before the slice, what is left behind
// the gather; who has the same run of zigzag on both sides is not moved.
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
module attributes {mesh.mesh = #mesh.mesh<"cp"=2, "tp"=2>} {
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME: %[[TOKENS:.*]]: tensor<4x4xi32, {{.*}}> {mesh.stored = #mesh.sharding<[{}, {"cp" zigzag}]>}
// CHECK-SAME: %[[X:.*]]: tensor<4x5x8xf32, {{[^>]*}}>, %[[Y:.*]]: tensor<4x4x8xf32
func.func @microbatch(%tokens: tensor<4x5xi32, #bs> {mesh.sharding = #mesh.sharding<[{}, {"cp" zigzag}]>},
                      %x: tensor<4x5x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{}, {}, {}]>},
                      %y: tensor<4x5x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{}, {"cp" zigzag}, {}]>}) {
  // CHECK-NEXT: %[[FIRST:.*]] = transformer.slice %[[X]] dim "sequence" offset 0 : {{.*}} -> tensor<4x2x8xf32
  // CHECK-NEXT: %[[SECOND:.*]] = transformer.slice %[[X]] dim "sequence" offset 2 : {{.*}} -> tensor<4x3x8xf32
  // CHECK-NEXT: %[[PARTS:.*]] = transformer.unslice %[[FIRST]], %[[SECOND]] dim "sequence" offsets [0, 4] : {{.*}} -> tensor<4x8x8xf32
  // CHECK-NEXT: mesh.slice %[[PARTS]] dim 1 over ["cp"] cause "enter" : tensor<4x8x8xf32, {{.*}} -> tensor<4x4x8xf32
  %0 = mesh.reshard %x from <[{}, {}, {}]> to <[{}, {"cp" zigzag}, {}]> cause "enter" {mesh.shardings = [#mesh.sharding<[{}, {"cp" zigzag}, {}]>]} : tensor<4x5x8xf32, #bse>
  // CHECK-NEXT: %[[ALL:.*]] = mesh.all_gather %[[Y]] dim 1 over ["cp"] cause "leave" : tensor<4x4x8xf32, {{.*}} -> tensor<4x8x8xf32
  // CHECK-NEXT: %[[LOW:.*]] = transformer.slice %[[ALL]] dim "sequence" offset 0 : {{.*}} -> tensor<4x2x8xf32
  // CHECK-NEXT: %[[HIGH:.*]] = transformer.slice %[[ALL]] dim "sequence" offset 4 : {{.*}} -> tensor<4x3x8xf32
  // CHECK-NEXT: transformer.unslice %[[LOW]], %[[HIGH]] dim "sequence" offsets [0, 2] : {{.*}} -> tensor<4x5x8xf32
  %1 = mesh.reshard %y from <[{}, {"cp" zigzag}, {}]> to <[{}, {}, {}]> cause "leave" {mesh.shardings = [#mesh.sharding<[{}, {}, {}]>]} : tensor<4x5x8xf32, #bse>
  // CHECK-NEXT: mesh.slice %[[Y]] dim 1 over ["tp"] cause "cut" : tensor<4x4x8xf32, {{.*}} -> tensor<4x2x8xf32
  %2 = mesh.reshard %y from <[{}, {"cp" zigzag}, {}]> to <[{}, {"cp" zigzag, "tp"}, {}]> cause "cut" {mesh.shardings = [#mesh.sharding<[{}, {"cp" zigzag, "tp"}, {}]>]} : tensor<4x5x8xf32, #bse>
  return
}
}

// -----

// A rotary table has the rank's own rows, at their positions: zigzag, blocks
// that are cut further, and all rows.
#sd = #transformer.dims<sequence, head_dim>
module attributes {mesh.mesh = #mesh.mesh<"cp"=2, "tp"=2>} {
// CHECK-LABEL: func.func @tables
func.func @tables() {
  // CHECK-NEXT: %[[ZIGZAG:.*]] = mesh.positions of 5 over {"cp" zigzag} : tensor<4xi32, {{.*}}>
  // CHECK-NEXT: transformer.rotary_table of %[[ZIGZAG]] : tensor<4xi32, {{.*}}> inverse_frequencies {{.*}} : tensor<4x4xf32
  %c0, %s0 = transformer.rotary_table inverse_frequencies [1.0, 0.5] scale 1.0 {mesh.shardings = [#mesh.sharding<[{"cp" zigzag}, {}]>, #mesh.sharding<[{"cp" zigzag}, {}]>]} : tensor<5x4xf32, #sd>
  // CHECK-NEXT: %[[BLOCKS:.*]] = mesh.positions of 5 over {"cp", "tp"} : tensor<2xi32, {{.*}}>
  // CHECK-NEXT: transformer.rotary_table of %[[BLOCKS]]
  %c1, %s1 = transformer.rotary_table inverse_frequencies [1.0, 0.5] scale 1.0 {mesh.shardings = [#mesh.sharding<[{"cp", "tp"}, {}]>, #mesh.sharding<[{"cp", "tp"}, {}]>]} : tensor<5x4xf32, #sd>
  // CHECK-NEXT: transformer.rotary_table inverse_frequencies {{.*}} : tensor<5x4xf32
  %c2, %s2 = transformer.rotary_table inverse_frequencies [1.0, 0.5] scale 1.0 {mesh.shardings = [#mesh.sharding<[{}, {}]>, #mesh.sharding<[{}, {}]>]} : tensor<5x4xf32, #sd>
  return
}
}
