// RUN: meshwork-opt %s -split-input-file -transformer-separate-documents -verify-diagnostics

!x = tensor<2x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<2x4x8xf32, #transformer.dims<batch, heads, sequence>>
!tokens = tensor<2x8xi32, #transformer.dims<batch, sequence>>
module {
  func.func @loss(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.parameter "x" init <normal, 0.0, 0.02> : !x
    // expected-error@+1 {{attention is not causal, and would see the documents that follow; set batch.documents to "joined"}}
    %o, %lse = transformer.attention %x, %x, %x scale 0.5 : !x, !x, !x -> !x, !lse
    return
  }
}

// -----

!tokens = tensor<2x8xi32, #transformer.dims<batch, sequence>>
module {
  // expected-error@+1 {{the model has no attention that documents could be separate for}}
  func.func @loss(%tokens: !tokens, %targets: !tokens) {
    return
  }
}

// -----

// expected-error@+1 {{expected a function @loss of tokens and targets}}
module {
}
