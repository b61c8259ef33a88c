// RUN: meshwork-opt %s -split-input-file -meshwork-gate="phase=partition" -verify-diagnostics

#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'mesh.reshard' op is left after the phase 'partition'}}
  %0 = mesh.reshard %x from <[{"dp"}]> to <[{}]> cause "" : tensor<4xf32, #e>
  // expected-error@+1 {{'transformer.map' op is left after the phase 'partition'}}
  %1 = transformer.map ins(%x : tensor<4xf32, #e>) {mesh.shardings = [#mesh.sharding<[{"dp"}]>]} -> tensor<4xf32, #e> {
  ^bb0(%v: f32):
    transformer.yield %v : f32
  }
  return
}
// expected-error@+1 {{'func.func' op is left after the phase 'partition'}}
func.func @update(%x: tensor<4xf32, #e> {mesh.sharding = #mesh.sharding<[{"dp"}]>}) {
  return
}
}

// -----

// State of another size than its sharding says.
#fe = #transformer.dims<ffn, embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "tp"=2>} {
func.func @update() {
  // expected-error@+1 {{has a part of array<i64: 8, 8>, expected array<i64: 4, 8> of array<i64: 16, 8> for #mesh.sharding<[{"tp", "dp"}, {}]>}}
  %w = transformer.parameter "w" init <constant, 1.0> of [16, 8] {mesh.stored = #mesh.sharding<[{"tp", "dp"}, {}]>} : tensor<8x8xf32, #fe>
  // expected-error@+1 {{has a part of array<i64: 8, 8>, expected array<i64: 16, 4>}}
  %m = transformer.state master "w" {mesh.global_shape = array<i64: 16, 8>, mesh.stored = #mesh.sharding<[{}, {"tp"}]>} : tensor<8x8xf32, #fe>
  // Uneven: 4, then 3 in a block of 4.
  %n = transformer.state master "n" {mesh.global_shape = array<i64: 7, 8>, mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>], mesh.stored = #mesh.sharding<[{"tp"}, {}]>} : tensor<4x8xf32, #fe>
  return
}
}
