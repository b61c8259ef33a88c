// RUN: meshwork-opt %s -split-input-file -transformer-quantize-gradients="type=int8 block=16" | FileCheck %s
// RUN: meshwork-opt %s -split-input-file -transformer-quantize-gradients="type=int4 block=16" | FileCheck %s --check-prefix=INT4
// RUN: meshwork-opt %s -split-input-file -transformer-quantize-gradients="type=int8 block=16 inner=fsdp" | FileCheck %s --check-prefix=INNER
// RUN: meshwork-opt %s -split-input-file -transformer-quantize-gradients="type=precision" | FileCheck %s --check-prefix=NONE
// RUN: not meshwork-opt %s -split-input-file -transformer-quantize-gradients="type=fp8" 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: found 'fp8', expected
// NONE-NOT: transformer.split
// NONE: mesh.reduce_scatter
// NONE-NOT: transformer.split

// Blocks of a gradient lie along the last dim that ranks do not split. What is
// made says whose gradient it is. A vector, and a sum that is no gradient,
// travel as they are.
// CHECK-LABEL: func.func @update
// CHECK: %[[G:.*]] = transformer.state{{ +}}gradient "w"
// CHECK: %[[B:.*]] = transformer.split %[[G]] dim "embed" : tensor<8x48xf32, #{{.*}}> -> tensor<8x3x16xf32, #ffn_blocks_embed>
// CHECK: transformer.reduce{{ +}}max %{{.*}} over #embed
// CHECK: %[[S:.*]]:2 = transformer.map {{.*}} -> tensor<3x8xf32, #blocks_ffn>
// CHECK: arith.constant 1.270000e+02
// CHECK: %[[C:.*]] = transformer.map ins(%[[B]], %[[S]]#0 : {{.*}} -> tensor<3x8x16xi8, #blocks_ffn_embed>
// CHECK: %[[CC:.*]] = mesh.all_to_all %[[C]] gather 0 split 1 over ["dp", "fsdp"] cause "w" : {{.*}} -> tensor<12x2x16xi8
// CHECK: %[[N:.*]] = transformer.split %[[CC]] dim "blocks" : {{.*}} -> tensor<4x3x2x16xi8, #ranks_blocks_ffn_embed>
// CHECK: %[[SS:.*]] = mesh.all_to_all %[[S]]#1 gather 0 split 1 over ["dp", "fsdp"] cause "w" : {{.*}} -> tensor<12x2xf32
// CHECK: transformer.split %[[SS]]
// CHECK: %[[SUM:.*]] = transformer.reduce{{ +}}add %{{.*}} over #ranks
// CHECK: %[[PLACED:.*]] = transformer.map ins(%[[SUM]] : {{.*}} -> tensor<2x3x16xf32, #ffn_blocks_embed>
// CHECK: %[[M:.*]] = transformer.merge %[[PLACED]] dim "embed" gradient "w" : {{.*}} -> tensor<2x48xf32
// CHECK: transformer.assign{{ +}}gradient "w", %[[M]]
// CHECK: mesh.reduce_scatter %{{.*}} tensor<16xf32
// CHECK: mesh.reduce_scatter %{{.*}} tensor<8x48xf32

// Of two halves of a block, the second one times 16.
// INT4-LABEL: func.func @update
// INT4: %[[B:.*]] = transformer.split %{{.*}} dim "embed" : {{.*}} -> tensor<8x3x2x8xf32, #ffn_blocks_halves_embed>
// INT4: transformer.slice %[[B]] dim "halves" offset 0
// INT4: transformer.slice %[[B]] dim "halves" offset 1
// INT4: arith.constant 7.000000e+00
// INT4: math.roundeven
// INT4: arith.constant 1.600000e+01
// INT4: mesh.all_to_all %{{.*}} : tensor<3x8x8xi8, {{.*}} -> tensor<12x2x8xi8
// INT4: transformer.unslice %{{.*}}, %{{.*}} dim "halves" offsets [0, 1]

// The inner axis is the minor one here. Summed over it first, a rank's part
// would be another one, so there is one sum.
// INNER-LABEL: func.func @update
// INNER: mesh.all_to_all %{{.*}} over ["dp", "fsdp"]
#fe = #transformer.dims<ffn, embed>
#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "fsdp"=2>} {
  func.func @update() {
    %g = transformer.state gradient "w" : tensor<8x48xf32, #fe>
    %s = mesh.reduce_scatter %g sum dim 0 over ["dp", "fsdp"] cause "w" : tensor<8x48xf32, #fe> -> tensor<2x48xf32, #fe>
    transformer.assign gradient "w", %s : tensor<2x48xf32, #fe>
    %v = transformer.state gradient "v" : tensor<16xf32, #e>
    %t = mesh.reduce_scatter %v sum dim 0 over ["dp", "fsdp"] cause "v" : tensor<16xf32, #e> -> tensor<4xf32, #e>
    transformer.assign gradient "v", %t : tensor<4xf32, #e>
    %o = transformer.state optimizer "w" slot "m" : tensor<8x48xf32, #fe>
    %p = mesh.reduce_scatter %o sum dim 0 over ["dp", "fsdp"] cause "w" : tensor<8x48xf32, #fe> -> tensor<2x48xf32, #fe>
    transformer.assign optimizer "w" slot "m", %p : tensor<2x48xf32, #fe>
    return
  }
}

// -----
// The inner axis is in front: 8 columns over 2, then each half over 2. The first
// sum is f32; the second has the type of the gradient. A dim of an odd size
// cannot be cut in halves, so 8 bits travel.
// INNER-LABEL: func.func @microbatch
// INNER: mesh.all_to_all {{.*}} over ["fsdp"] {{.*}} -> tensor<2x4x5xi8
// INNER: %[[HALF:.*]] = transformer.merge {{.*}} -> tensor<5x4xf32
// INNER: transformer.split %[[HALF]]
// INNER: mesh.all_to_all {{.*}} over ["dp"]
// INNER: transformer.merge {{.*}} -> tensor<5x2xbf16
// INNER: transformer.accumulate

// CHECK-LABEL: func.func @microbatch
// CHECK: transformer.split %{{.*}} dim "ffn" {transformer.pass = #transformer.pass<backward>} : tensor<5x8xbf16, #{{.*}}> -> tensor<1x5x8xbf16, #blocks_ffn_embed>
// CHECK: mesh.all_to_all %{{.*}} gather 0 split 1
// CHECK: transformer.merge %{{.*}} dim "ffn" {transformer.pass = #transformer.pass<backward>} : {{.*}} -> tensor<5x2xbf16
// INT4-LABEL: func.func @microbatch
// INT4-NOT: halves
// INT4: arith.constant 1.270000e+02
#fe = #transformer.dims<ffn, embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "fsdp"=2>} {
  func.func @microbatch(%g: tensor<5x8xbf16, #fe>) {
    %s = mesh.reduce_scatter %g sum dim 1 over ["fsdp", "dp"] cause "w" {transformer.pass = #transformer.pass<backward>} : tensor<5x8xbf16, #fe> -> tensor<5x2xbf16, #fe>
    transformer.accumulate gradient "w", %s {transformer.pass = #transformer.pass<backward>} : tensor<5x2xbf16, #fe>
    return
  }
}
