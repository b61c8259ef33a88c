// RUN: meshwork-opt %s -meshwork-gate="phase=fuse" -verify-diagnostics

func.func @f(%x: tensor<4xf32, #transformer.dims<embed>>) -> tensor<f32> {
  // expected-error@+1 {{is left after the phase 'fuse'}}
  %s = transformer.reduce add %x over <embed> : tensor<4xf32, #transformer.dims<embed>> -> tensor<f32>
  return %s : tensor<f32>
}
