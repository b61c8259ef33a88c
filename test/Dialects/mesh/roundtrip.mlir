// RUN: meshwork-opt %s | meshwork-opt | FileCheck %s
// RUN: meshwork-opt %s -mlir-print-op-generic | meshwork-opt | FileCheck %s

// CHECK: module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "tp:(1)2"=2, "tp:(2)2"=2>}
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "tp:(1)2"=2, "tp:(2)2"=2>} {

// Closed and open dims, priorities, axes that a dim must not get, partial values.
// CHECK-LABEL: func.func @shardings
// CHECK-SAME: mesh.sharding = #mesh.sharding<[{"dp", "tp:(1)2"}, {?}p1], replicated = {"tp:(2)2"}>
func.func @shardings(%x: tensor<4x8xf32> {mesh.sharding = #mesh.sharding<[{"dp", "tp:(1)2"}, {?}p1], replicated = {"tp:(2)2"}>}) -> tensor<4x8xf32> {
  // CHECK: mesh.reshard %{{.*}} from <[{"dp", ?}p2, {}]> to <[{}, {}], partial = max {"dp"}> cause "a \22quoted\22 reason" : tensor<4x8xf32>
  %0 = mesh.reshard %x from <[{"dp", ?}p2, {}]> to <[{}, {}], partial = max {"dp"}> cause "a \22quoted\22 reason" : tensor<4x8xf32>
  // CHECK: mesh.reshard {{.*}} partial = sum {"dp", "tp:(1)2"}>
  // CHECK-SAME: mesh.shardings = [#mesh.sharding<[{}, {}]>]
  %1 = mesh.reshard %0 from <[{}, {}], partial = sum {"dp", "tp:(1)2"}> to <[{}, {}]> cause "c" {mesh.shardings = [#mesh.sharding<[{}, {}]>]} : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// Two ranks and dim 0 of 8: whole on each, or 4 and 4.
// CHECK-LABEL: func.func @collectives
func.func @collectives(%x: tensor<8x6xf32>) {
  // CHECK: mesh.all_reduce %{{.*}} max over ["dp", "tp:(1)2"] cause "a"
  %0 = mesh.all_reduce %x max over ["dp", "tp:(1)2"] cause "a" : tensor<8x6xf32> -> tensor<8x6xf32>
  // CHECK: mesh.reduce_scatter %{{.*}} sum dim 0 over ["dp"] cause "b" : tensor<8x6xf32> -> tensor<4x6xf32>
  %1 = mesh.reduce_scatter %x sum dim 0 over ["dp"] cause "b" : tensor<8x6xf32> -> tensor<4x6xf32>
  // CHECK: mesh.all_gather %{{.*}} dim 0 over ["dp"] cause "c" : tensor<4x6xf32> -> tensor<8x6xf32>
  %2 = mesh.all_gather %1 dim 0 over ["dp"] cause "c" : tensor<4x6xf32> -> tensor<8x6xf32>
  // A cause in full: what moves, what needs it, of which layers, why, by which keys.
  // CHECK: mesh.all_gather %{{.*}} cause "h.*.ln" layer 3 for "h.*.c_fc" layer 4 why "takes ffn, which dp splits (shard.ffn)" by ["shard.ffn", "zero.stage"] : tensor<4x6xf32>
  %full = mesh.all_gather %1 dim 0 over ["dp"] cause "h.*.ln" layer 3 for "h.*.c_fc" layer 4 why "takes ffn, which dp splits (shard.ffn)" by ["shard.ffn", "zero.stage"] : tensor<4x6xf32> -> tensor<8x6xf32>
  // CHECK: mesh.all_to_all %{{.*}} gather 0 split 1 over ["dp"] cause "d" : tensor<4x6xf32> -> tensor<8x3xf32>
  %3 = mesh.all_to_all %1 gather 0 split 1 over ["dp"] cause "d" : tensor<4x6xf32> -> tensor<8x3xf32>
  // CHECK: mesh.permute %{{.*}} sources [0, 2, 1, 3] over ["dp", "tp:(1)2"] cause "e" : tensor<4x6xf32>
  %4 = mesh.permute %1 sources [0, 2, 1, 3] over ["dp", "tp:(1)2"] cause "e" : tensor<4x6xf32> -> tensor<4x6xf32>
  // CHECK: mesh.slice %{{.*}} dim 1 over ["tp:(2)2"] cause "f" : tensor<8x6xf32> -> tensor<8x3xf32>
  %5 = mesh.slice %x dim 1 over ["tp:(2)2"] cause "f" : tensor<8x6xf32> -> tensor<8x3xf32>
  return
}

// Four ranks and seven elements: blocks of 2, the last of 1. So gathering 2 each
// may leave 7 or 8.
// CHECK-LABEL: func.func @uneven
func.func @uneven(%x: tensor<7xf32>) {
  // CHECK: mesh.slice %{{.*}} : tensor<7xf32> -> tensor<2xf32>
  %0 = mesh.slice %x dim 0 over ["dp", "tp:(1)2"] cause "a" : tensor<7xf32> -> tensor<2xf32>
  // CHECK: mesh.all_gather %{{.*}} : tensor<2xf32> -> tensor<7xf32>
  %1 = mesh.all_gather %0 dim 0 over ["dp", "tp:(1)2"] cause "b" : tensor<2xf32> -> tensor<7xf32>
  return
}

// CHECK-LABEL: func.func @coordinate
func.func @coordinate() -> tensor<i32> {
  // CHECK: mesh.coordinate over ["tp:(1)2", "tp:(2)2"] of 257 : tensor<i32>
  %c = mesh.coordinate over ["tp:(1)2", "tp:(2)2"] of 257 : tensor<i32>
  return %c : tensor<i32>
}

// CHECK-LABEL: func.func @extent
func.func @extent() -> tensor<i32> {
  // CHECK: mesh.extent over ["tp:(1)2", "tp:(2)2"] of 257 : tensor<i32>
  %n = mesh.extent over ["tp:(1)2", "tp:(2)2"] of 257 : tensor<i32>
  return %n : tensor<i32>
}

// Layouts stand behind their axes; blocks are not said.
// CHECK-LABEL: func.func @positions
// CHECK-SAME: mesh.sharding = #mesh.sharding<[{"dp" zigzag, "tp:(1)2"}, {"tp:(2)2" zigzag, ?}p1]>
func.func @positions(%x: tensor<4x8xf32> {mesh.sharding = #mesh.sharding<[{"dp" zigzag, "tp:(1)2"}, {"tp:(2)2" zigzag, ?}p1]>}) -> tensor<65xi32> {
  // Two axes in zigzag are one split into 8 chunks of 33, a block halves two of these.
  // CHECK: mesh.positions of 257 over {"dp" zigzag, "tp:(1)2" zigzag} : tensor<66xi32>
  %0 = mesh.positions of 257 over {"dp" zigzag, "tp:(1)2" zigzag} : tensor<66xi32>
  // CHECK: mesh.positions of 257 over {"dp" zigzag, "tp:(1)2"} : tensor<65xi32>
  %1 = mesh.positions of 257 over {"dp" zigzag, "tp:(1)2"} : tensor<65xi32>
  // CHECK: mesh.positions of 257 over {"dp"} hop 1 :
  %2 = mesh.positions of 257 over {"dp"} hop 1 : tensor<129xi32>
  return %1 : tensor<65xi32>
}
}

// RUN: meshwork-opt %s | FileCheck %s --check-prefix=STORED
// State, between instructions.
// STORED: transformer.parameter "w" {{.*}}mesh.stored = #mesh.sharding<[{"dp"}]>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @state() {
  %w = transformer.parameter "w" init <constant, 1.0> {mesh.stored = #mesh.sharding<[{"dp"}]>} : tensor<4xf32, #transformer.dims<embed>>
  return
}
}

// RUN: meshwork-opt %s | FileCheck %s --check-prefix=STAGES
// Between the stages of a pipeline; what is not used is received all the same.
// STAGES-LABEL: func.func @stages
module attributes {mesh.mesh = #mesh.mesh<"pp"=4>} {
func.func @stages(%x: tensor<4xf32>, %y: tensor<2xi32>) {
  // STAGES: mesh.send forward %{{.*}}, %{{.*}} over "pp" to 3 : tensor<4xf32>, tensor<2xi32>
  mesh.send forward %x, %y over "pp" to 3 : tensor<4xf32>, tensor<2xi32>
  // STAGES: mesh.receive backward over "pp" from 0 : tensor<4xf32>, tensor<2xi32>
  %a, %b = mesh.receive backward over "pp" from 0 : tensor<4xf32>, tensor<2xi32>
  return
}
}
