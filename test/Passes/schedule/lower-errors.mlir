// RUN: meshwork-opt %s -split-input-file -schedule-lower -verify-diagnostics

// expected-error@+1 {{expected functions @microbatch of tokens, targets and maybe documents, and @update}}
module {
}

// -----

#abc = #transformer.dims<a, b, c>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.parameter "x" init <constant, 1.0> : tensor<2x3x4xf32, #abc>
    %y = transformer.parameter "y" init <constant, 1.0> : tensor<3x5xf32, #transformer.dims<b, d>>
    // The rows a and c have the sum between them.
    // expected-error@+1 {{is no single matrix product: in "abc,bd->acd"}}
    %z = transformer.contract "abc,bd->acd" %x, %y : tensor<2x3x4xf32, #abc>, tensor<3x5xf32, #transformer.dims<b, d>> -> tensor<2x4x5xf32, #transformer.dims<a, c, d>>
    return
  }
  func.func @update() {
    return
  }
}
