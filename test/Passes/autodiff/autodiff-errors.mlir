// RUN: meshwork-opt %s -split-input-file -transformer-autodiff -verify-diagnostics

// expected-error@+1 {{expected a function @loss with one result, a tensor<f32>}}
module {
}

// -----

#e = #transformer.dims<embed>
func.func @loss() -> tensor<f32> {
  %w = transformer.parameter "w" init <constant, 1.0> : tensor<4xf32, #e>
  // expected-error@+1 {{has no gradient; run -transformer-decompose first}}
  %y = transformer.activate silu %w : tensor<4xf32, #e>
  %loss = transformer.reduce add %y over #e : tensor<4xf32, #e> -> tensor<f32>
  return %loss : tensor<f32>
}
