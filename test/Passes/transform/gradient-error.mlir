// RUN: meshwork-opt %s -transformer-quantize-gradients="type=int8 block=16 tell-error stages=pp" | FileCheck %s
// RUN: meshwork-opt %s -transformer-quantize-gradients="type=int4 block=16 tell-error stages=pp" | FileCheck %s --check-prefix=INT4
// RUN: meshwork-opt %s -transformer-quantize-gradients="type=int8 block=16" | FileCheck %s --check-prefix=SILENT
// RUN: meshwork-opt %s -transformer-quantize-gradients="type=precision tell-error" | FileCheck %s --check-prefix=SILENT
// SILENT-NOT: gradient_error

// Squares of what rounding changes. Ranks along "tp" have the same gradient:
// each counts for a half. Of two halves of a block both count.
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[B:.*]] = transformer.split
// CHECK: %[[S:.*]]:2 = transformer.map
// CHECK: %[[SQUARES:.*]] = transformer.map ins(%[[B]], %[[S]]#0, %[[S]]#1 : {{.*}} -> tensor<3x8x16xf32, #blocks_ffn_embed>
// CHECK: math.roundeven
// CHECK: %[[E:.*]] = transformer.reduce{{ +}}add %[[SQUARES]] {{.*}} -> tensor<f32>
// CHECK: mesh.all_to_all
// CHECK: %[[HALF:.*]] = transformer.map ins(%[[E]] : tensor<f32>) -> tensor<f32>
// CHECK: arith.constant 5.000000e-01
// CHECK: transformer.accumulate{{ +}}metric "gradient_error_squared", %[[HALF]]
// INT4-LABEL: func.func @microbatch
// INT4: %[[E0:.*]] = transformer.reduce{{ +}}add {{.*}} -> tensor<f32>
// INT4: %[[E1:.*]] = transformer.reduce{{ +}}add {{.*}} -> tensor<f32>
// INT4: transformer.map ins(%[[E0]], %[[E1]] : tensor<f32>, tensor<f32>) -> tensor<f32>

// A gradient that is split over "tp", or summed over it later, is another one on
// each rank. What microbatches and the update round is added up over all ranks
// but stages, which are not cut yet.
// CHECK-LABEL: func.func @update
// CHECK: %[[SUMMED:.*]] = transformer.state{{ +}}metric "gradient_error_squared" {{.*}}partial = sum {"dp", "tp"}
// CHECK: %[[V:.*]] = transformer.reduce{{ +}}add {{.*}} -> tensor<f32>
// CHECK: mesh.all_to_all
// CHECK: %[[OWN:.*]] = transformer.map ins(%[[V]] : tensor<f32>) -> tensor<f32>
// CHECK: arith.constant 1.000000e+00
// CHECK: %[[M:.*]] = mesh.all_reduce %[[SUMMED]] sum over ["dp", "tp"] cause "gradient_error" why {{.*}} by ["zero.gradient_error"]
// CHECK: %[[ZERO:.*]] = transformer.map -> tensor<f32>
// CHECK: %[[ALL:.*]] = transformer.map ins(%[[OWN]], %[[ZERO]] : {{.*}}) -> tensor<f32>
// CHECK: %[[U:.*]] = mesh.all_reduce %[[ALL]] sum over ["dp", "tp"]
// CHECK: %[[ROOT:.*]] = transformer.map ins(%[[M]], %[[U]] : {{.*}}) -> tensor<f32>
// CHECK: math.sqrt
// CHECK: transformer.assign{{ +}}metric "gradient_error", %[[ROOT]]
// CHECK: transformer.assign{{ +}}grad_norm "", %[[NORM:.*]] :
// What reads the norm waits for both.
// CHECK: %[[BOTH:.*]] = transformer.map ins(%[[NORM]], %[[ROOT]] : {{.*}}) -> tensor<f32>
// CHECK: arith.minnumf
// CHECK: transformer.map ins(%[[BOTH]] :
#fe = #transformer.dims<ffn, embed>
module attributes {mesh.mesh = #mesh.mesh<"pp"=2, "dp"=2, "tp"=2>} {
  func.func @microbatch(%g: tensor<8x48xf32, #fe>) {
    %s = mesh.reduce_scatter %g sum dim 0 over ["dp"] cause "w" : tensor<8x48xf32, #fe> -> tensor<4x48xf32, #fe>
    transformer.accumulate gradient "w", %s : tensor<4x48xf32, #fe>
    return
  }
  func.func @update() {
    %loss = transformer.state loss "" : tensor<f32>
    transformer.assign loss "", %loss : tensor<f32>
    %w = transformer.state gradient "w" {mesh.stored = #mesh.sharding<[{"dp"}, {}]>} : tensor<4x48xf32, #fe>
    %v = transformer.state gradient "v" {mesh.stored = #mesh.sharding<[{"tp"}, {}], partial = sum {"dp"}>} : tensor<8x48xf32, #fe>
    %s = mesh.reduce_scatter %v sum dim 0 over ["dp"] cause "v" : tensor<8x48xf32, #fe> -> tensor<4x48xf32, #fe>
    transformer.assign gradient "v", %s : tensor<4x48xf32, #fe>
    %norm = transformer.reduce add %s over #fe : tensor<4x48xf32, #fe> -> tensor<f32>
    transformer.assign grad_norm "", %norm : tensor<f32>
    %factor = transformer.map ins(%norm : tensor<f32>) -> tensor<f32> {
    ^bb0(%x: f32):
      transformer.yield %x : f32
    }
    transformer.assign metric "factor", %factor : tensor<f32>
    return
  }
}
