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

// The optimizer works in f32, on gradients as they are kept.
// CHECK-LABEL: func.func @update
func.func @update() {
  // CHECK: transformer.state{{ +}}gradient "w" : tensor<4x8xbf16
  %g = transformer.state gradient "w" : tensor<4x8xf32, #se>
  // CHECK: transformer.state{{ +}}master "w" : tensor<4x8xf32
  %m = transformer.state master "w" : tensor<4x8xf32, #se>
  return
}
