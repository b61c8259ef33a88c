// RUN: meshwork-opt %s -memory-recompute="policies=selective" | FileCheck %s
// RUN: meshwork-opt %s -memory-recompute="policies=full" | FileCheck %s

// A number for the whole tensor, here what FP8 scales by, is kept: neither the
// pass over the tensor nor the sum over ranks that made it runs again.
#be = #transformer.dims<batch, embed>
#ef = #transformer.dims<embed, ffn>
#bf = #transformer.dims<batch, ffn>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
  // CHECK-LABEL: func.func @microbatch
  func.func @microbatch(%x: tensor<4x8xf32, #be>) {
    %w = transformer.parameter "layers.7.up" layer 0 init <constant, 1.0> : tensor<8x8xf32, #ef>
    %a = transformer.map ins(%x : tensor<4x8xf32, #be>) -> tensor<4x8xf32, #be> {
    ^bb0(%v: f32):
      %s = math.absf %v : f32
      transformer.yield %s : f32
    }
    // CHECK: %[[M:.*]] = transformer.reduce max
    // CHECK: %[[R:.*]] = mesh.all_reduce %[[M]]
    // CHECK: %[[S:.*]] = transformer.map ins(%[[R]] : tensor<f32>)
    %m = transformer.reduce max %a over #be : tensor<4x8xf32, #be> -> tensor<f32>
    %r = mesh.all_reduce %m max over ["dp"] cause "x" : tensor<f32> -> tensor<f32>
    %i = transformer.map ins(%r : tensor<f32>) -> tensor<f32> {
    ^bb0(%v: f32):
      %s = arith.negf %v : f32
      transformer.yield %s : f32
    }
    %q = transformer.map ins(%x, %i : tensor<4x8xf32, #be>, tensor<f32>) -> tensor<4x8xf32, #be> {
    ^bb0(%v: f32, %f: f32):
      %s = arith.mulf %v, %f : f32
      transformer.yield %s : f32
    }
    %y = transformer.contract "be,ef->bf" %q, %w : tensor<4x8xf32, #be>, tensor<8x8xf32, #ef> -> tensor<4x8xf32, #bf>
    // CHECK: transformer.contract "be,ef->bf"
    // CHECK-NOT: transformer.reduce
    // CHECK-NOT: mesh.all_reduce
    // CHECK: %[[Q:.*]] = transformer.map ins(%arg0, %[[S]] : {{.*}} {transformer.pass = #transformer.pass<recomputed>}
    // CHECK: transformer.contract "be,bf->ef" %[[Q]]
    %g = transformer.contract "be,bf->ef" %q, %y {transformer.pass = #transformer.pass<backward>} : tensor<4x8xf32, #be>, tensor<4x8xf32, #bf> -> tensor<8x8xf32, #ef>
    transformer.accumulate gradient "layers.7.up", %g {transformer.pass = #transformer.pass<backward>} : tensor<8x8xf32, #ef>
    return
  }
  func.func @update() {
    return
  }
}
