// RUN: meshwork-opt %s -memory-recompute="policies=none" | FileCheck %s --check-prefix=NONE
// RUN: meshwork-opt %s -memory-recompute="policies=selective" | FileCheck %s --check-prefix=SELECTIVE
// RUN: meshwork-opt %s -memory-recompute="policies=full" | FileCheck %s --check-prefix=FULL
// RUN: meshwork-opt %s -memory-recompute="policies=full,none" | FileCheck %s --check-prefix=MIXED
// RUN: not meshwork-opt %s -memory-recompute="policies=full,none,none" 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not meshwork-opt %s -memory-recompute="policies=some" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not meshwork-opt %s -memory-recompute="policies=auto" 2>&1 | FileCheck %s --check-prefix=AUTO

// COUNT: error: found 3 recompute policies, expected one, or one for each of 2 layers
// NAME: policies option: found 'some', expected none, selective, offload, full or auto
// AUTO: error: recompute policy is 'auto', expected none, selective, offload or full

// Two layers x + up·square(down·x) of a residual stream, and parts of their
// backward pass. The first weight is stored in parts.
#be = #transformer.dims<batch, embed>
#bf = #transformer.dims<batch, ffn>
#fe = #transformer.dims<ffn, embed>
#ef = #transformer.dims<embed, ffn>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
  func.func @microbatch(%x: tensor<4x8xf32, #be>) {
    %w0 = transformer.parameter "first.down" layer 0 init <constant, 1.0> : tensor<8x8xf32, #fe>
    %g0 = mesh.all_gather %w0 dim 0 over ["dp"] cause "w" : tensor<8x8xf32, #fe> -> tensor<16x8xf32, #fe>
    %h0 = transformer.contract "be,fe->bf" %x, %g0 : tensor<4x8xf32, #be>, tensor<16x8xf32, #fe> -> tensor<4x16xf32, #bf>
    %a0 = transformer.map ins(%h0 : tensor<4x16xf32, #bf>) -> tensor<4x16xf32, #bf> {
    ^bb0(%v: f32):
      %s = arith.mulf %v, %v : f32
      transformer.yield %s : f32
    }
    %u0 = transformer.parameter "first.up" layer 0 init <constant, 1.0> : tensor<8x16xf32, #ef>
    %o0 = transformer.contract "bf,ef->be" %a0, %u0 : tensor<4x16xf32, #bf>, tensor<8x16xf32, #ef> -> tensor<4x8xf32, #be>
    %x1 = transformer.map ins(%x, %o0 : tensor<4x8xf32, #be>, tensor<4x8xf32, #be>) -> tensor<4x8xf32, #be> {
    ^bb0(%v: f32, %w: f32):
      %s = arith.addf %v, %w : f32
      transformer.yield %s : f32
    }
    %w1 = transformer.parameter "second.down" layer 1 init <constant, 1.0> : tensor<16x8xf32, #fe>
    %h1 = transformer.contract "be,fe->bf" %x1, %w1 : tensor<4x8xf32, #be>, tensor<16x8xf32, #fe> -> tensor<4x16xf32, #bf>
    %a1 = transformer.map ins(%h1 : tensor<4x16xf32, #bf>) -> tensor<4x16xf32, #bf> {
    ^bb0(%v: f32):
      %s = arith.mulf %v, %v : f32
      transformer.yield %s : f32
    }
    // Layer 1 backward: a1 for a weight gradient, h1 for the gradient of the square.
    // NONE: %[[H1:.*]] = transformer.contract "be,fe->bf"
    // NONE: %[[H1:.*]] = transformer.contract "be,fe->bf"
    // NONE: %[[A1:.*]] = transformer.map ins(%[[H1]] :
    // NONE-NOT: <recomputed>
    // NONE: transformer.contract "bf,be->ef" %[[A1]]
    // SELECTIVE: %[[H0:.*]] = transformer.contract "be,fe->bf"
    // SELECTIVE: %[[H1:.*]] = transformer.contract "be,fe->bf"
    // SELECTIVE: %[[A1:.*]] = transformer.map ins(%[[H1]] : {{.*}}) {transformer.pass = #transformer.pass<recomputed>}
    // SELECTIVE: transformer.contract "bf,be->ef" %[[A1]]
    // SELECTIVE: transformer.map ins(%[[H1]]
    // FULL: %[[X1:.*]] = transformer.map ins(%arg0, %
    // FULL: transformer.map
    // FULL: %[[H1:.*]] = transformer.contract "be,fe->bf" %[[X1]], %{{.*}} {transformer.pass = #transformer.pass<recomputed>}
    // FULL-NEXT: %[[A1:.*]] = transformer.map ins(%[[H1]] : {{.*}}) {transformer.pass = #transformer.pass<recomputed>}
    // FULL: transformer.contract "bf,be->ef" %[[A1]]
    // FULL: transformer.map ins(%[[H1]]
    %b1 = transformer.contract "bf,be->ef" %a1, %x1 {transformer.pass = #transformer.pass<backward>} : tensor<4x16xf32, #bf>, tensor<4x8xf32, #be> -> tensor<8x16xf32, #ef>
    transformer.accumulate gradient "second.up", %b1 {transformer.pass = #transformer.pass<backward>} : tensor<8x16xf32, #ef>
    %d1 = transformer.map ins(%h1 : tensor<4x16xf32, #bf>) {transformer.pass = #transformer.pass<backward>} -> tensor<4x16xf32, #bf> {
    ^bb0(%v: f32):
      %s = arith.addf %v, %v : f32
      transformer.yield %s : f32
    }
    %c1 = transformer.contract "bf,be->fe" %d1, %x1 {transformer.pass = #transformer.pass<backward>} : tensor<4x16xf32, #bf>, tensor<4x8xf32, #be> -> tensor<16x8xf32, #fe>
    transformer.accumulate gradient "second.down", %c1 {transformer.pass = #transformer.pass<backward>} : tensor<16x8xf32, #fe>
    // Layer 0 backward. The weight is gathered again, not kept.
    // NONE: mesh.all_gather {{.*}} {transformer.pass = #transformer.pass<backward>}
    // SELECTIVE: %[[A0:.*]] = transformer.map ins(%[[H0]] : {{.*}}) {transformer.pass = #transformer.pass<recomputed>}
    // SELECTIVE: transformer.contract "bf,be->ef" %[[A0]]
    // SELECTIVE: mesh.all_gather {{.*}} {transformer.pass = #transformer.pass<backward>}
    // FULL: %[[G0:.*]] = mesh.all_gather {{.*}} {transformer.pass = #transformer.pass<backward>}
    // FULL: %[[H0:.*]] = transformer.contract "be,fe->bf" %arg0, %[[G0]] {transformer.pass = #transformer.pass<recomputed>}
    // FULL: transformer.contract "be,fe->bf" %arg0, %[[G0]] {transformer.pass = #transformer.pass<backward>} :
    // MIXED: transformer.contract "bf,be->ef" %{{.*}}, %{{.*}} {transformer.pass = #transformer.pass<backward>}
    // MIXED: transformer.contract "be,fe->bf" %arg0, %{{.*}} {transformer.pass = #transformer.pass<recomputed>}
    // MIXED: transformer.contract "bf,be->ef" %{{.*}}, %{{.*}} {transformer.pass = #transformer.pass<backward>}
    %b0 = transformer.contract "bf,be->ef" %a0, %x {transformer.pass = #transformer.pass<backward>} : tensor<4x16xf32, #bf>, tensor<4x8xf32, #be> -> tensor<8x16xf32, #ef>
    transformer.accumulate gradient "first.up", %b0 {transformer.pass = #transformer.pass<backward>} : tensor<8x16xf32, #ef>
    %d0 = transformer.map ins(%h0 : tensor<4x16xf32, #bf>) {transformer.pass = #transformer.pass<backward>} -> tensor<4x16xf32, #bf> {
    ^bb0(%v: f32):
      %s = arith.addf %v, %v : f32
      transformer.yield %s : f32
    }
    %c0 = transformer.contract "bf,be->fe" %d0, %x {transformer.pass = #transformer.pass<backward>} : tensor<4x16xf32, #bf>, tensor<4x8xf32, #be> -> tensor<16x8xf32, #fe>
    transformer.accumulate gradient "first.down", %c0 {transformer.pass = #transformer.pass<backward>} : tensor<16x8xf32, #fe>
    %e0 = transformer.contract "be,fe->bf" %x, %g0 {transformer.pass = #transformer.pass<backward>} : tensor<4x8xf32, #be>, tensor<16x8xf32, #fe> -> tensor<4x16xf32, #bf>
    transformer.accumulate gradient "y", %e0 {transformer.pass = #transformer.pass<backward>} : tensor<4x16xf32, #bf>
    return
  }
}
