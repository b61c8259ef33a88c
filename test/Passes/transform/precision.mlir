// RUN: meshwork-opt %s -transformer-precision="compute=bf16 gradients=bf16" | FileCheck %s
// RUN: meshwork-opt %s -transformer-precision | FileCheck %s --check-prefix=F32

#se = #transformer.dims<sequence, embed>

// Weights and activations are stored in bf16; sums stay f32.
// CHECK: transformer.gradient_type = bf16
// CHECK-LABEL: func.func @microbatch
// F32-LABEL: func.func @microbatch
// F32-NOT: bf16
func.func @microbatch() {
  // CHECK: transformer.parameter "w" {{.*}} : tensor<4x8xbf16
  %w = transformer.parameter "w" init <constant, 1.0> : tensor<4x8xf32, #se>
  // CHECK: transformer.reduce {{.*}} tensor<4x8xbf16, #{{.*}}> -> tensor<4xf32
  %s = transformer.reduce add %w over <embed> : tensor<4x8xf32, #se> -> tensor<4xf32, #transformer.dims<sequence>>
  // A sum that a slice's gradient moves is rounded first.
  // CHECK: %[[ROUNDED:.*]] = transformer.map ins({{.*}} : tensor<4xf32, {{.*}}) -> tensor<4xbf16
  // CHECK: transformer.unslice %[[ROUNDED]] {{.*}} tensor<4xbf16, {{.*}}> -> tensor<6xbf16
  %u = transformer.unslice %s dim "sequence" offsets [1] : tensor<4xf32, #transformer.dims<sequence>> -> tensor<6xf32, #transformer.dims<sequence>>
  return
}

// What is chosen from stays f32, back to the product; the weight does not.
// CHECK-LABEL: func.func @routing
// F32-LABEL: func.func @routing
func.func @routing(%x: tensor<4x8xf32, #se>) {
  // CHECK: transformer.parameter "router" {{.*}} : tensor<8x6xbf16
  %w = transformer.parameter "router" init <constant, 1.0> : tensor<8x6xf32, #transformer.dims<embed, experts>>
  // CHECK: transformer.parameter "bias" {{.*}} : tensor<6xbf16
  %b = transformer.parameter "bias" init <constant, 1.0> : tensor<6xf32, #transformer.dims<experts>>
  // CHECK: %[[X:.*]] = transformer.map {{.*}} -> tensor<4x8xbf16
  %x2 = transformer.map ins(%x : tensor<4x8xf32, #se>) -> tensor<4x8xf32, #se> {
  ^bb0(%v: f32):
    transformer.yield %v : f32
  }
  // CHECK: transformer.contract "se,en->sn" %[[X]], {{.*}} : tensor<4x8xbf16, {{.*}}>, tensor<8x6xbf16, {{.*}}> -> tensor<4x6xf32
  %l = transformer.contract "se,en->sn" %x2, %w : tensor<4x8xf32, #se>, tensor<8x6xf32, #transformer.dims<embed, experts>> -> tensor<4x6xf32, #transformer.dims<sequence, experts>>
  // CHECK: transformer.map {{.*}} -> tensor<4x6xf32
  %p = transformer.map ins(%l, %b : tensor<4x6xf32, #transformer.dims<sequence, experts>>, tensor<6xf32, #transformer.dims<experts>>) -> tensor<4x6xf32, #transformer.dims<sequence, experts>> {
  ^bb0(%v: f32, %c: f32):
    %s = arith.addf %v, %c : f32
    transformer.yield %s : f32
  }
  // CHECK: transformer.top_k {{.*}} : tensor<4x6xf32, {{.*}}> -> tensor<4x2xi32
  %k = transformer.top_k %p : tensor<4x6xf32, #transformer.dims<sequence, experts>> -> tensor<4x2xi32, #transformer.dims<sequence, choices>>
  return
}

// The optimizer works in f32, on gradients as they are kept.
// CHECK-LABEL: func.func @update
func.func @update() {
  // CHECK: transformer.state{{ +}}gradient "w" : tensor<4x8xbf16
  %g = transformer.state gradient "w" : tensor<4x8xf32, #se>
  // CHECK: transformer.state{{ +}}master "w" : tensor<4x8xf32
  %m = transformer.state master "w" : tensor<4x8xf32, #se>
  return
}
