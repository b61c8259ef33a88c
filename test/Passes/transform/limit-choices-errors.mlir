// RUN: meshwork-opt %s -transformer-limit-choices="capacity=2.0" -split-input-file -verify-diagnostics

!ids = tensor<2x8xi32, #transformer.dims<batch, sequence>>
// expected-error@+1 {{the model has no experts; leave the line out}}
module {
  func.func @loss(%tokens: !ids, %targets: !ids) {
    return
  }
}

// -----

!x = tensor<8x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<8x2xf32, #transformer.dims<sequence, choices>>
!n = tensor<8x2xi32, #transformer.dims<sequence, choices>>
!w = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!d = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
// expected-error@+1 {{found choices 'tensor<8x2xi32, #transformer.dims<sequence, choices>>', expected <batch, token dims..., choices>: groups are of whole sequences}}
module {
  func.func @loss(%x: !x, %n: !n, %c: !c, %w: !w, %d: !d) -> !x {
    %y = transformer.experts silu %x, %n, %c gate %w up %w down %d : !x, !n, !c, !w, !d
    return %y : !x
  }
}

// -----

!ids = tensor<4x8xi32, #transformer.dims<batch, sequence>>
!x = tensor<4x8x4xf32, #transformer.dims<batch, sequence, embed>>
!s = tensor<4x8x4xf32, #transformer.dims<batch, sequence, routed>>
!c = tensor<4x8x2xf32, #transformer.dims<batch, sequence, choices>>
!n = tensor<4x8x2xi32, #transformer.dims<batch, sequence, choices>>
!w = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!d = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
// expected-warning@+1 {{drops nothing: an expert has room for each token of its group; take a smaller factor, or leave the line out}}
module {
  func.func @loss(%x: !x, %n: !n, %c: !c, %w: !w, %d: !d) -> !x {
    %y = transformer.experts silu %x, %n, %c gate %w up %w down %d : !x, !n, !c, !w, !d
    return %y : !x
  }
}
