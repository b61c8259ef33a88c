// RUN: meshwork-opt %s -memory-recompute="policies=selective" | FileCheck %s
// RUN: meshwork-opt %s -memory-recompute="policies=none" | FileCheck %s --check-prefix=NONE

// The second stage of a pipeline. What it receives is no weight: a gather of it
// is kept or not as the policy says. Gradients of weights may come later than
// the list behind them, so what they compute again is not there for others.
#be = #transformer.dims<batch, embed>
#ef = #transformer.dims<embed, ffn>
#bf = #transformer.dims<batch, ffn>
module attributes {mesh.mesh = #mesh.mesh<"pp"=2, "dp"=2>} {
  func.func @microbatch(%t: tensor<2xi32, #transformer.dims<batch>>) {
    // CHECK: transformer.stage_list {{ *}}weight_grad stage 2
    // CHECK: mesh.all_gather {{.*}}<recomputed>
    // CHECK: %[[A:.*]] = transformer.map {{.*}}<recomputed>
    // CHECK: transformer.contract "be,bf->ef" %[[A]]
    // CHECK: transformer.stage_list {{ *}}input_grad
    // CHECK: mesh.all_gather {{.*}}<recomputed>
    // CHECK: %[[B:.*]] = transformer.map {{.*}}<recomputed>
    // CHECK: transformer.contract "be,ef->bf" %[[B]]
    // CHECK: transformer.stage_list {{ *}}weight_grad stage 1
    // CHECK-NOT: transformer.map
    // CHECK: transformer.contract "be,bf->ef" %[[B]]
    // NONE-COUNT-1: mesh.all_gather
    // NONE-NOT: mesh.all_gather
    // NONE-NOT: <recomputed>
    transformer.stage_list forward stage 1
    %x = mesh.receive forward over "pp" from 0 : tensor<2x8xf32, #be>
    %g = mesh.all_gather %x dim 0 over ["dp"] cause "x" : tensor<2x8xf32, #be> -> tensor<4x8xf32, #be>
    %a = transformer.map ins(%g : tensor<4x8xf32, #be>) -> tensor<4x8xf32, #be> {
    ^bb0(%v: f32):
      %s = arith.mulf %v, %v : f32
      transformer.yield %s : f32
    }
    %w = transformer.parameter "up" layer 1 init <constant, 1.0> : tensor<8x8xf32, #ef>
    %y = transformer.contract "be,ef->bf" %a, %w : tensor<4x8xf32, #be>, tensor<8x8xf32, #ef> -> tensor<4x8xf32, #bf>
    transformer.stage_list weight_grad stage 2
    %u = transformer.contract "be,bf->ef" %a, %y {transformer.pass = #transformer.pass<backward>} : tensor<4x8xf32, #be>, tensor<4x8xf32, #bf> -> tensor<8x8xf32, #ef>
    transformer.accumulate gradient "up", %u {transformer.pass = #transformer.pass<backward>} : tensor<8x8xf32, #ef>
    transformer.stage_list input_grad stage 1
    %d = transformer.contract "be,ef->bf" %a, %w {transformer.pass = #transformer.pass<backward>} : tensor<4x8xf32, #be>, tensor<8x8xf32, #ef> -> tensor<4x8xf32, #bf>
    transformer.stage_list weight_grad stage 1
    %e = transformer.contract "be,bf->ef" %a, %d {transformer.pass = #transformer.pass<backward>} : tensor<4x8xf32, #be>, tensor<4x8xf32, #bf> -> tensor<8x8xf32, #ef>
    transformer.accumulate gradient "up", %e {transformer.pass = #transformer.pass<backward>} : tensor<8x8xf32, #ef>
    return
  }
}
