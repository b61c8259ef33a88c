// RUN: meshwork-opt %s -split-input-file -partition-insert-reshards="once=dp" | FileCheck %s

// A weight that is stored over both axes is gathered over "dp" once, of no
// pass and no layer, and over "fsdp" for the forward and for the backward pass.
#bse = #transformer.dims<batch, sequence, embed>
#bsf = #transformer.dims<batch, sequence, ffn>
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "fsdp"=2>} {
func.func @microbatch(%x: tensor<4x8x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{"dp", "fsdp"}, {}, {}]>}) {
  // CHECK: %[[W:.*]] = transformer.parameter "w"
  %w = transformer.parameter "w" layer 0 init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {}]>], mesh.stored = #mesh.sharding<[{"fsdp", "dp"}, {}]>} : tensor<16x8xf32, #fe>
  // CHECK: %[[O:.*]] = mesh.reshard %[[W]] from <[{"fsdp", "dp"}, {}]> to <[{"fsdp"}, {}]> cause "w" layer 0 why "is stored over dp (zero.stage) and gathered over it once a step (zero.gathered)" by ["zero.stage", "zero.gathered"] {mesh.shardings = [#mesh.sharding<[{"fsdp"}, {}]>], transformer.of_step} :
  // CHECK: %[[F:.*]] = mesh.reshard %[[O]] from <[{"fsdp"}, {}]> to <[{}, {}]> cause "w" layer 0 why "stays split over fsdp through the step (zero.gathered) and is computed with whole" by ["zero.gathered"] {mesh.shardings = [#mesh.sharding<[{}, {}]>], transformer.layer = 0 : i64} :
  // CHECK: contract "bse,fe->bsf" %{{.*}}, %[[F]]
  %h = transformer.contract "bse,fe->bsf" %x, %w {transformer.layer = 0 : i64, mesh.shardings = [#mesh.sharding<[{"dp", "fsdp"}, {}, {}]>]} : tensor<4x8x8xf32, #bse>, tensor<16x8xf32, #fe> -> tensor<4x8x16xf32, #bsf>
  // CHECK-NEXT: %[[B:.*]] = mesh.reshard %[[O]] {{.*}}transformer.pass = #transformer.pass<backward>}
  // CHECK: contract "bsf,fe->bse" %{{.*}}, %[[B]]
  %dx = transformer.contract "bsf,fe->bse" %h, %w {transformer.pass = #transformer.pass<backward>, mesh.shardings = [#mesh.sharding<[{"dp", "fsdp"}, {}, {}]>]} : tensor<4x8x16xf32, #bsf>, tensor<16x8xf32, #fe> -> tensor<4x8x8xf32, #bse>
  return
}
func.func @update() {
  return
}
}

// -----

// A weight that is not stored over "dp", or is computed with split over it, is
// gathered as ever. One that is stored over "dp" alone has the step's gather.
#bse = #transformer.dims<batch, sequence, embed>
#bsf = #transformer.dims<batch, sequence, ffn>
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "fsdp"=2>} {
func.func @microbatch(%x: tensor<4x8x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{}, {}, {}]>}) {
  %inner = transformer.parameter "inner" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {}]>], mesh.stored = #mesh.sharding<[{"fsdp"}, {}]>} : tensor<16x8xf32, #fe>
  %outer = transformer.parameter "outer" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {}]>], mesh.stored = #mesh.sharding<[{"dp"}, {}]>} : tensor<16x8xf32, #fe>
  %split = transformer.parameter "split" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{"dp"}, {}]>], mesh.stored = #mesh.sharding<[{"dp", "fsdp"}, {}]>} : tensor<16x8xf32, #fe>
  // CHECK: mesh.reshard {{.*}} from <[{"fsdp"}, {}]> to <[{}, {}]> cause "inner"
  // CHECK-NOT: of_step
  // CHECK: contract
  %a = transformer.contract "bse,fe->bsf" %x, %inner {mesh.shardings = [#mesh.sharding<[{}, {}, {}]>]} : tensor<4x8x8xf32, #bse>, tensor<16x8xf32, #fe> -> tensor<4x8x16xf32, #bsf>
  // CHECK-NEXT: %[[O:.*]] = mesh.reshard {{.*}} from <[{"dp"}, {}]> to <[{}, {}]> cause "outer" {{.*}}transformer.of_step}
  // CHECK-NEXT: contract "bse,fe->bsf" %{{.*}}, %[[O]]
  %b = transformer.contract "bse,fe->bsf" %x, %outer {mesh.shardings = [#mesh.sharding<[{}, {}, {}]>]} : tensor<4x8x8xf32, #bse>, tensor<16x8xf32, #fe> -> tensor<4x8x16xf32, #bsf>
  // CHECK-NEXT: %[[S:.*]] = mesh.reshard {{.*}} from <[{"dp", "fsdp"}, {}]> to <[{"dp"}, {}]> cause "split"
  // CHECK-NOT: of_step
  // CHECK: contract "bse,fe->bsf" %{{.*}}, %[[S]]
  %c = transformer.contract "bse,fe->bsf" %x, %split {mesh.shardings = [#mesh.sharding<[{}, {}, {"dp"}]>]} : tensor<4x8x8xf32, #bse>, tensor<16x8xf32, #fe> -> tensor<4x8x16xf32, #bsf>
  return
}
func.func @update() {
  return
}
}
