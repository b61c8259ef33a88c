// RUN: meshwork-opt %s -transformer-separate-documents -transformer-decompose -transformer-autodiff | FileCheck %s

// The third argument reaches attention and its gradient, beside what dropout reads.
!x = tensor<2x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<2x4x8xf32, #transformer.dims<batch, heads, sequence>>
!flat = tensor<2x8x2xf32, #transformer.dims<batch, sequence, embed>>
!w = tensor<16x2xf32, #transformer.dims<vocab, embed>>
!tokens = tensor<2x8xi32, #transformer.dims<batch, sequence>>
module {
  // CHECK: func.func @microbatch(%{{.*}}: tensor<2x8xi32, #[[D:.*]]>, %{{.*}}: tensor<2x8xi32, #[[D]]>, %[[BEGINS:.*]]: tensor<2x8xi32, #[[D]]>)
  func.func @loss(%tokens: !tokens, %targets: !tokens) -> tensor<f32> {
    %w = transformer.parameter "w" init <normal, 0.0, 0.02> : !w
    %q = transformer.parameter "q" init <normal, 0.0, 0.02> : tensor<4x2x2xf32, #transformer.dims<heads, head_dim, embed>>
    %e = transformer.embedding %w, %tokens : !w, !tokens -> !flat
    %x = transformer.contract "bse,hde->bshd" %e, %q : !flat, tensor<4x2x2xf32, #transformer.dims<heads, head_dim, embed>> -> !x
    // CHECK: transformer.attention %{{.*}} documents(%[[BEGINS]] : tensor<2x8xi32, #[[D]]>) random({{.*}}) causal
    %o, %lse = transformer.attention %x, %x, %x causal scale 0.5 dropout "a" rate 0.1 : !x, !x, !x -> !x, !lse
    %y = transformer.contract "bshd,hde->bse" %o, %q : !x, tensor<4x2x2xf32, #transformer.dims<heads, head_dim, embed>> -> !flat
    // CHECK: transformer.attention_grad %{{.*}} documents(%[[BEGINS]] : tensor<2x8xi32, #[[D]]>) random({{.*}}) causal
    %loss = transformer.head_loss %y, %w, %targets scale 1.0 : !flat, !w, !tokens -> tensor<f32>
    return %loss : tensor<f32>
  }
}
