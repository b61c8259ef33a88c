// RUN: meshwork-opt %s -transformer-router-losses="z-coefficient=0.1" -verify-diagnostics

!ids = tensor<2x8xi32, #transformer.dims<batch, sequence>>
!x = tensor<2x8x4xf32, #transformer.dims<batch, sequence, embed>>
// expected-error@+1 {{the model has no router that chooses experts; leave the line out}}
module {
  func.func @loss(%tokens: !ids, %targets: !ids, %x: !x) -> !x {
    return %x : !x
  }
}
