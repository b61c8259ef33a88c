// RUN: meshwork-opt %s -sharding-shard-states='stage=0 axes=dp' | FileCheck %s --check-prefix=STAGE0
// RUN: meshwork-opt %s -sharding-shard-states='stage=1 axes=dp' | FileCheck %s --check-prefix=STAGE1
// RUN: meshwork-opt %s -sharding-shard-states='stage=2 axes=dp' | FileCheck %s --check-prefix=STAGE2
// RUN: meshwork-opt %s -sharding-shard-states='stage=3 axes=dp' | FileCheck %s --check-prefix=STAGE3
// RUN: meshwork-opt %s -sharding-shard-states='stage=3 axes=dp whole-gradients' | FileCheck %s --check-prefixes=STAGE3,WHOLE
// RUN: meshwork-opt %s -sharding-shard-states='stage=3 axes=tp' | FileCheck %s --check-prefix=SAME

#fe = #transformer.dims<ffn, embed>
#qe = #transformer.dims<qkv, embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=4, "tp"=2>} {
func.func @microbatch() {
  // Columns over "tp" hold 8 rows each, which "dp" divides: minor on dim 0.
  // STAGE0: parameter "w" {{.*}}mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp"}, {}]>
  // STAGE1: parameter "w" {{.*}}mesh.stored = #mesh.sharding<[{"tp"}, {}]>
  // STAGE2: parameter "w" {{.*}}mesh.stored = #mesh.sharding<[{"tp"}, {}]>
  // STAGE3: parameter "w" {{.*}}mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp", "dp"}, {}]>
  // Already split over these axes: nothing to add.
  // SAME: parameter "w" {{.*}}mesh.stored = #mesh.sharding<[{"tp"}, {}]>
  %w = transformer.parameter "w" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>]} : tensor<16x6xf32, #fe>
  // 3 is not divisible by 4, 8 is.
  // STAGE3: parameter "second" {{.*}}mesh.stored = #mesh.sharding<[{}, {"dp"}]>
  %second = transformer.parameter "second" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {}]>]} : tensor<3x8xf32, #qe>
  // Nothing is: the longest dim, with short last blocks.
  // STAGE3: parameter "longest" {{.*}}mesh.stored = #mesh.sharding<[{}, {"dp"}]>
  %longest = transformer.parameter "longest" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {}]>]} : tensor<3x7xf32, #qe>
  // STAGE1: accumulate gradient "w", {{.*}}mesh.stored = #mesh.sharding<[{"tp"}, {}]>
  // STAGE2: accumulate gradient "w", {{.*}}mesh.stored = #mesh.sharding<[{"tp", "dp"}, {}]>
  // WHOLE: accumulate gradient "w", {{.*}}mesh.stored = #mesh.sharding<[{"tp"}, {}]>
  transformer.accumulate gradient "w", %w : tensor<16x6xf32, #fe>
  return
}
func.func @update() {
  // The optimizer works where its own state lies, also on gradients.
  // STAGE0: state master "w" {{.*}}mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp"}, {}]>
  // STAGE1: state master "w" {{.*}}mesh.shardings = [#mesh.sharding<[{"tp", "dp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp", "dp"}, {}]>
  %m = transformer.state master "w" : tensor<16x6xf32, #fe>
  // STAGE1: state gradient "w" {{.*}}mesh.shardings = [#mesh.sharding<[{"tp", "dp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp"}, {}]>
  // STAGE2: state gradient "w" {{.*}}mesh.shardings = [#mesh.sharding<[{"tp", "dp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp", "dp"}, {}]>
  // WHOLE: state gradient "w" {{.*}}mesh.shardings = [#mesh.sharding<[{"tp", "dp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp"}, {}]>
  %g = transformer.state gradient "w" : tensor<16x6xf32, #fe>
  // STAGE2: assign master "w", {{.*}}mesh.stored = #mesh.sharding<[{"tp", "dp"}, {}]>
  transformer.assign master "w", %m : tensor<16x6xf32, #fe>
  // STAGE2: assign weight "w", {{.*}}mesh.stored = #mesh.sharding<[{"tp"}, {}]>
  // STAGE3: assign weight "w", {{.*}}mesh.stored = #mesh.sharding<[{"tp", "dp"}, {}]>
  transformer.assign weight "w", %m : tensor<16x6xf32, #fe>
  return
}
}
