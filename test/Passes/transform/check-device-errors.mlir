// RUN: meshwork-opt %s -transformer-check-device -verify-diagnostics

#bshd = #transformer.dims<batch, sequence, heads, head_dim>
#lse = #transformer.dims<batch, heads, sequence>
#ve = #transformer.dims<vocab, embed>
!wide = tensor<1x8x2x512xf32, #bshd>
!most = tensor<1x8x2x256xf32, #bshd>
!lse = tensor<1x2x8xf32, #lse>
!long = tensor<1x1073741824x2x16xf32, #bshd>
!long_lse = tensor<1x2x1073741824xf32, #lse>
!ids = tensor<1x8xi32, #transformer.dims<batch, sequence>>
!table = tensor<2147483648x4xf32, #ve>

// What has the same size is told once, with its layers; all limits are told.
func.func @loss(%q: !wide, %p: !most, %l: !long, %t: !table, %ids: !ids) {
  // expected-error @+1 {{found "cuda", where attention takes a head_dim of at most 256, and the model has 512 in layers 0 to 3, 3 of them; make it smaller, or train on a CPU ("cpu")}}
  %0:2 = transformer.attention %q, %q, %q causal scale 5.0e-1 {transformer.layer = 0 : i64} : !wide, !wide, !wide -> !wide, !lse
  %1:2 = transformer.attention %q, %q, %q causal scale 5.0e-1 {transformer.layer = 1 : i64} : !wide, !wide, !wide -> !wide, !lse
  %2:2 = transformer.attention %q, %q, %q causal scale 5.0e-1 {transformer.layer = 3 : i64} : !wide, !wide, !wide -> !wide, !lse
  %3:2 = transformer.attention %p, %p, %p causal scale 5.0e-1 : !most, !most, !most -> !most, !lse
  // expected-error @+1 {{found 1073741824, expected at most 1073741823: attention on a GPU takes no longer sequence}}
  %4:2 = transformer.attention %l, %l, %l causal scale 5.0e-1 : !long, !long, !long -> !long, !long_lse
  // expected-error @+1 {{found "cuda", where an embedding takes a vocab of at most 2147483647, and the model has 2147483648; make it smaller, or train on a CPU ("cpu")}}
  %5 = transformer.embedding %t, %ids : !table, !ids -> tensor<1x8x4xf32, #transformer.dims<batch, sequence, embed>>
  return
}
