// RUN: meshwork-opt %s -split-input-file -partition-insert-reshards -partition-localize | FileCheck %s

// Experts come together where ranks share them; rows stay where they are.
#bsn = #transformer.dims<batch, sequence, experts>
#bsk = #transformer.dims<batch, sequence, choices>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "tp"=2>} {
// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%x: tensor<4x6x8xf32, #bsn> {mesh.sharding = #mesh.sharding<[{"dp"}, {}, {"tp"}]>}) {
  // CHECK: %[[ALL:.*]] = mesh.all_gather %{{.*}} dim 2 over ["tp"] {{.*}} : tensor<2x6x4xf32, {{.*}}> -> tensor<2x6x8xf32
  // CHECK-NOT: mesh.extent
  // CHECK: transformer.top_k %[[ALL]] : tensor<2x6x8xf32, {{.*}}> -> tensor<2x6x2xi32
  %c = transformer.top_k %x {mesh.shardings = [#mesh.sharding<[{"dp"}, {}, {}]>]} : tensor<4x6x8xf32, #bsn> -> tensor<4x6x2xi32, #bsk>
  return
}
func.func @update() {
  return
}
}

// -----

// Tokens behind the end of a rank's part are padding, and told so.
#bsn = #transformer.dims<batch, sequence, experts>
#bsk = #transformer.dims<batch, sequence, choices>
module attributes {mesh.mesh = #mesh.mesh<"cp"=2>} {
// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%x: tensor<4x5x8xf32, #bsn> {mesh.sharding = #mesh.sharding<[{}, {"cp"}, {}]>}) {
  // CHECK: %[[END:.*]] = mesh.extent over ["cp"] of 5 : tensor<i32>
  // CHECK: %[[VALID:.*]] = transformer.map ins(%[[END]] : tensor<i32>) -> tensor<4x3xf32, #{{.*}}>
  // CHECK: transformer.top_k %{{.*}} valid %[[VALID]] : tensor<4x3xf32, {{.*}}> : tensor<4x3x8xf32, {{.*}}> -> tensor<4x3x2xi32
  %c = transformer.top_k %x {mesh.shardings = [#mesh.sharding<[{}, {"cp"}, {}]>]} : tensor<4x5x8xf32, #bsn> -> tensor<4x5x2xi32, #bsk>
  return
}
func.func @update() {
  return
}
}
