// RUN: meshwork-opt %s -split-input-file -verify-diagnostics -sharding-annotate="axes=tp=4 rules=batch=tp,heads=tp,vocab=tp" | FileCheck %s

// Blocks of a vocabulary may be short.
#ve = #transformer.dims<vocab, embed>
// CHECK-LABEL: func.func @microbatch
func.func @microbatch() {
  // CHECK: mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>]
  %w = transformer.parameter "w" init <constant, 1.0> : tensor<257x8xf32, #ve>
  return
}

// -----

// Heads and samples come in whole numbers, equally many on each rank.
#hde = #transformer.dims<heads, head_dim, embed>
!q = tensor<4x4x6x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<4x6x4xf32, #transformer.dims<batch, heads, sequence>>
func.func @microbatch(%tokens: tensor<4x4xi32, #transformer.dims<batch, sequence>>, %q: !q) {
  %o, %lse = transformer.attention %q, %q, %q causal scale 0.5 : !q, !q, !q -> !q, !lse
  // expected-error@+1 {{dim 'heads' of size 6 cannot be split over axis 'tp' of size 4; an axis of 3 or 6 ranks would divide it}}
  %w = transformer.parameter "w" init <constant, 1.0> : tensor<6x2x8xf32, #hde>
  return
}

// -----

#bs = #transformer.dims<batch, sequence>
// expected-error@+1 {{dim 'batch' of size 6 cannot be split over axis 'tp' of size 4; an axis of 3 or 6 ranks would divide it}}
func.func @microbatch(%tokens: tensor<6x8xi32, #bs>) {
  return
}
