// The sums of a norm's rows are kept, or made once where the layer runs again;
// all else of the norm is computed again from them. A sum of few columns, or of
// another shape, is as any op.
// RUN: meshwork-opt %s -memory-recompute="policies=none" | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: meshwork-opt %s -memory-recompute="policies=selective" | FileCheck %s --check-prefixes=CHECK,SELECTIVE
// RUN: meshwork-opt %s -memory-recompute="policies=full" | FileCheck %s --check-prefix=FULL

#be = #transformer.dims<batch, embed>
#b = #transformer.dims<batch>
module {
  func.func @microbatch(%x: tensor<4x32xf32, #be>, %n: tensor<4x31xf32, #be>) {
    %w = transformer.parameter "w" layer 0 init <constant, 1.0> : tensor<4x32xf32, #be>
    %h = transformer.map ins(%x, %w : tensor<4x32xf32, #be>, tensor<4x32xf32, #be>) -> tensor<4x32xf32, #be> {
    ^bb0(%v: f32, %u: f32):
      %s = arith.mulf %v, %u : f32
      transformer.yield %s : f32
    }
    // CHECK: %[[S:.*]] = transformer.reduce{{ +}}add %{{.*}} over #embed {transformer.kept} : tensor<4x32xf32, #batch_embed> -> tensor<4xf32, #batch>
    // FULL: transformer.reduce{{ +}}add %{{.*}} over #embed : tensor<4x32xf32, #batch_embed>
    %s = transformer.reduce add %h over <embed> : tensor<4x32xf32, #be> -> tensor<4xf32, #b>
    // CHECK: transformer.reduce{{ +}}add %{{.*}} over #embed : tensor<4x31xf32
    %few = transformer.reduce add %n over <embed> : tensor<4x31xf32, #be> -> tensor<4xf32, #b>
    %y = transformer.map ins(%h, %s, %few : tensor<4x32xf32, #be>, tensor<4xf32, #b>, tensor<4xf32, #b>) -> tensor<4x32xf32, #be> {
    ^bb0(%v: f32, %t: f32, %u: f32):
      %a = arith.mulf %v, %t : f32
      %c = arith.mulf %a, %u : f32
      transformer.yield %c : f32
    }
    // Nothing of the backward pass is made of this one.
    // CHECK: transformer.reduce{{ +}}add %{{.*}} over #embed : tensor<4x32xf32
    %unread = transformer.reduce add %x over <embed> : tensor<4x32xf32, #be> -> tensor<4xf32, #b>
    // NONE-NOT: recomputed
    // SELECTIVE-NOT: transformer.reduce{{ +}}add %{{.*}} : tensor<4x32xf32
    // SELECTIVE: transformer.map ins(%{{[0-9]+}}, %[[S]], %{{.*}}) {transformer.pass = #transformer.pass<recomputed>}
    // FULL: transformer.reduce{{ +}}add %{{.*}} over #embed {transformer.kept, transformer.pass = #transformer.pass<recomputed>} : tensor<4x32xf32
    // FULL: transformer.map {{.*}} {transformer.pass = #transformer.pass<recomputed>}
    %g = transformer.map ins(%y : tensor<4x32xf32, #be>) {transformer.pass = #transformer.pass<backward>} -> tensor<4x32xf32, #be> {
    ^bb0(%v: f32):
      transformer.yield %v : f32
    }
    transformer.accumulate gradient "w", %g {transformer.pass = #transformer.pass<backward>} : tensor<4x32xf32, #be>
    return
  }
}
