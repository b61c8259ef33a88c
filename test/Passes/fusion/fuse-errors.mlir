// RUN: meshwork-opt %s -fusion-fuse -verify-diagnostics

#abc = #transformer.dims<a, b, c>
func.func @middle(%x: tensor<2x3x4xf32, #abc>) -> tensor<2x4xf32, #transformer.dims<a, c>> {
  // expected-error@+1 {{has no kernel form: its reduction is over neither leading nor trailing dims}}
  %s = transformer.reduce add %x over <b> : tensor<2x3x4xf32, #abc> -> tensor<2x4xf32, #transformer.dims<a, c>>
  return %s : tensor<2x4xf32, #transformer.dims<a, c>>
}
