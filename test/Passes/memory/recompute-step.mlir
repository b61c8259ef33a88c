// RUN: meshwork-opt %s -memory-recompute="policies=full" | FileCheck %s

// What a step has gathered stays through it; the second gather runs again.
#be = #transformer.dims<batch, embed>
#bf = #transformer.dims<batch, ffn>
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "fsdp"=2>} {
  func.func @microbatch(%x: tensor<4x8xf32, #be>) {
    %w = transformer.parameter "w" layer 0 init <constant, 1.0> : tensor<4x8xf32, #fe>
    // CHECK: %[[O:.*]] = mesh.all_gather {{.*}}of_step
    %o = mesh.all_gather %w dim 0 over ["dp"] cause "w" {transformer.of_step} : tensor<4x8xf32, #fe> -> tensor<8x8xf32, #fe>
    // CHECK-NEXT: mesh.all_gather %[[O]]
    %g = mesh.all_gather %o dim 0 over ["fsdp"] cause "w" : tensor<8x8xf32, #fe> -> tensor<16x8xf32, #fe>
    %h = transformer.contract "be,fe->bf" %x, %g : tensor<4x8xf32, #be>, tensor<16x8xf32, #fe> -> tensor<4x16xf32, #bf>
    // CHECK-NOT: of_step
    // CHECK: mesh.all_gather %[[O]] {{.*}}transformer.pass<backward>
    // CHECK-NOT: of_step
    // CHECK: transformer.accumulate
    %d = transformer.contract "bf,fe->be" %h, %g {transformer.pass = #transformer.pass<backward>} : tensor<4x16xf32, #bf>, tensor<16x8xf32, #fe> -> tensor<4x8xf32, #be>
    transformer.accumulate gradient "x", %d {transformer.pass = #transformer.pass<backward>} : tensor<4x8xf32, #be>
    return
  }
}
