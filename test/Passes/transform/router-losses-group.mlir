// RUN: meshwork-opt %s -transformer-router-losses="group=2" -verify-diagnostics

!ids = tensor<4x8xi32, #transformer.dims<batch, sequence>>
!x = tensor<4x8x4xf32, #transformer.dims<batch, sequence, embed>>
// expected-warning@+1 {{has no effect: there is no balance loss and no capacity}}
module {
  func.func @loss(%tokens: !ids, %targets: !ids, %x: !x) -> !x {
    return %x : !x
  }
}
