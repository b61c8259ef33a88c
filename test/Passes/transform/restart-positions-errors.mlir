// RUN: meshwork-opt %s -split-input-file -transformer-restart-positions -verify-diagnostics

!learned = tensor<12x4xf32, #transformer.dims<positions, embed>>
!row = tensor<8x4xf32, #transformer.dims<sequence, embed>>
!tokens = tensor<2x8xi32, #transformer.dims<batch, sequence>>
module {
  func.func @loss(%tokens: !tokens, %targets: !tokens) {
    %w = transformer.parameter "wpe" init <normal, 0.0, 0.02> : !learned
    %e = transformer.slice %w dim "positions" offset 0 : !learned -> !row
    // expected-error@+1 {{a position's row goes into transformer.map of no samples, and positions that begin anew differ between samples; set batch.positions to "sequence", or let the model add it to what has the dim 'batch'}}
    %z = transformer.map ins(%e : !row) -> !row {
    ^bb0(%a: f32):
      transformer.yield %a : f32
    }
    return
  }
}

// -----

!tokens = tensor<2x8xi32, #transformer.dims<batch, sequence>>
module {
  // expected-error@+1 {{the model has no positions that could begin anew; set batch.positions to "sequence"}}
  func.func @loss(%tokens: !tokens, %targets: !tokens) {
    return
  }
}

// -----

// expected-error@+1 {{expected a function @loss of tokens and targets}}
module {
}
