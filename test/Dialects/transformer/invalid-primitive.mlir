// What the verifiers of primitive and step ops refuse, by label.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

#e = #transformer.dims<embed>
#f = #transformer.dims<ffn>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.map' op (C1) result 'tensor<4xf32, #transformer.dims<ffn>>' differs in dims from 'tensor<4xf32, #transformer.dims<embed>>'}}
  %0:2 = transformer.map ins(%x : tensor<4xf32, #e>) -> tensor<4xf32, #e>, tensor<4xf32, #f> {
  ^bb0(%a: f32):
    transformer.yield %a, %a : f32, f32
  }
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<5xf32, #e>) {
  // expected-error@+1 {{'transformer.map' op (C2) operand 'tensor<5xf32, #transformer.dims<embed>>' has a dim that}}
  %0 = transformer.map ins(%x : tensor<5xf32, #e>) -> tensor<4xf32, #e> {
  ^bb0(%a: f32):
    transformer.yield %a : f32
  }
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xbf16, #e>) {
  // expected-error@+1 {{'transformer.map' op (C3) body argument is 'bf16', expected 'f32'}}
  %0 = transformer.map ins(%x : tensor<4xbf16, #e>) -> tensor<4xbf16, #e> {
  ^bb0(%a: bf16):
    transformer.yield %a : bf16
  }
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{(C3) body has 0 arguments for 1 operands}}
  %0 = transformer.map ins(%x : tensor<4xf32, #e>) -> tensor<4xf32, #e> {
    %c = arith.constant 1.0 : f32
    transformer.yield %c : f32
  }
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{(C3) body must yield one f32, or i32 where that is its type, for each of the 1 results}}
  %0 = transformer.map ins(%x : tensor<4xf32, #e>) -> tensor<4xf32, #e> {
  ^bb0(%a: f32):
    transformer.yield %a, %a : f32, f32
  }
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{'transformer.map' op (C4) body holds transformer.step_input, expected ops of arith and math}}
  %0 = transformer.map -> tensor<4xf32, #e> {
    %s = transformer.step_input seed : tensor<i32>
    %c = arith.constant 1.0 : f32
    transformer.yield %c : f32
  }
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  %0 = transformer.map -> tensor<4xf32, #e> {
    // expected-error@+1 {{'transformer.index' op (C1) names dim 'vocab', which 'tensor<4xf32, #transformer.dims<embed>>' lacks}}
    %i = transformer.index "vocab" : i32
    %c = arith.sitofp %i : i32 to f32
    transformer.yield %c : f32
  }
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.index' op expects parent op 'transformer.map'}}
  %i = transformer.index "vocab" : i32
  return
}

// -----
func.func @f(%x: f32) {
  // expected-error@+1 {{'transformer.yield' op expects parent op to be one of 'transformer.map, transformer.fused, transformer.repeat'}}
  transformer.yield %x : f32
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  %0 = transformer.map -> tensor<4xf32, #e> {
    %i = arith.constant 0 : i32
    // expected-error@+1 {{'transformer.dropout_mask' op (C1) rate is -1.000000e-01, expected at least 0 and less than 1}}
    %m = transformer.dropout_mask %i, %i, %i stream 7 rate -0.1
    transformer.yield %m : f32
  }
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.reduce' op (C1) input 'tensor<4xf32, #transformer.dims<embed>>' has no dim 'vocab'}}
  %0 = transformer.reduce add %x over <vocab> : tensor<4xf32, #e> -> tensor<f32>
  return
}

// -----
#se = #transformer.dims<sequence, embed>
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4x8xf32, #se>) {
  // expected-error@+1 {{(C1) result is 'tensor<8xbf16, #transformer.dims<embed>>', expected 'tensor<8xf32, #transformer.dims<embed>>'}}
  %0 = transformer.reduce add %x over <sequence> : tensor<4x8xf32, #se> -> tensor<8xbf16, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.roll' op (C1) shift is 4, expected at least 0 and less than the last dim}}
  %0 = transformer.roll %x by 4 : tensor<4xf32, #e>
  return
}

// -----
func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{(C1) shift is 0, expected at least 0 and less than the last dim of 'tensor<f32>'}}
  %0 = transformer.roll %x by 0 : tensor<f32>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.slice' op (C1) elements 3 to 5 of dim 'embed' do not exist, its size is 4}}
  %0 = transformer.slice %x dim "embed" offset 3 : tensor<4xf32, #e> -> tensor<2xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{(C1) elements 9223372036854775807 to 9223372036854775807 of dim 'embed' do not exist}}
  %0 = transformer.slice %x dim "embed" offset 9223372036854775807 : tensor<4xf32, #e> -> tensor<2xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{(C1) 'tensor<4x4xf32, #transformer.dims<vocab, embed>>' is no slice of 'tensor<4xf32, #transformer.dims<embed>>'}}
  %0 = transformer.slice %x dim "embed" offset 0 : tensor<4xf32, #e> -> tensor<4x4xf32, #ve>
  return
}

// -----
#e = #transformer.dims<embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%x: tensor<2x4xf32, #ve>) {
  // expected-error@+1 {{'transformer.unslice' op (C1) a part begins at 0 before 2, the end of the part before it}}
  %0 = transformer.unslice %x, %x dim "vocab" offsets [0, 0] : tensor<2x4xf32, #ve>, tensor<2x4xf32, #ve> -> tensor<4x4xf32, #ve>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
func.func @f(%x: tensor<2x4xf32, #ve>) {
  // expected-error@+1 {{(C1) 1 parts but 2 offsets}}
  %0 = transformer.unslice %x dim "vocab" offsets [0, 2] : tensor<2x4xf32, #ve> -> tensor<4x4xf32, #ve>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
func.func @f(%x: tensor<2x4xf32, #ve>) {
  // expected-error@+1 {{'transformer.split' op (C1) 'tensor<2x4xf32, #transformer.dims<vocab, embed>>' has no dim 'ffn'}}
  %0 = transformer.split %x dim "ffn" : tensor<2x4xf32, #ve> -> tensor<2x2x2xf32, #transformer.dims<vocab, blocks, embed>>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
func.func @f(%x: tensor<2x4xf32, #ve>) {
  // expected-error@+1 {{'transformer.split' op (C1) 'tensor<2x2x3xf32, #transformer.dims<vocab, blocks, embed>>' is not 'tensor<2x4xf32, #transformer.dims<vocab, embed>>' with several dims in the place of 'embed'}}
  %0 = transformer.split %x dim "embed" : tensor<2x4xf32, #ve> -> tensor<2x2x3xf32, #transformer.dims<vocab, blocks, embed>>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
func.func @f(%x: tensor<2x4xf32, #ve>) {
  // expected-error@+1 {{with several dims in the place of 'embed'}}
  %0 = transformer.split %x dim "embed" : tensor<2x4xf32, #ve> -> tensor<2x4xf32, #ve>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
func.func @f(%x: tensor<2x4xf32, #ve>) {
  // Only `dim` may change.
  // expected-error@+1 {{with several dims in the place of 'embed'}}
  %0 = transformer.split %x dim "embed" : tensor<2x4xf32, #ve> -> tensor<4x2x2xf32, #transformer.dims<vocab, blocks, embed>>
  return
}

// -----
#bve = #transformer.dims<blocks, vocab, embed>
func.func @f(%x: tensor<2x3x4xf32, #bve>) {
  // expected-error@+1 {{'transformer.merge' op (C1) 'tensor<2x3x4xf32, #transformer.dims<blocks, vocab, embed>>' is not 'tensor<8x4xf32, #transformer.dims<vocab, embed>>' with several dims in the place of 'vocab'}}
  %0 = transformer.merge %x dim "vocab" : tensor<2x3x4xf32, #bve> -> tensor<8x4xf32, #transformer.dims<vocab, embed>>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
func.func @f(%x: tensor<2x4xf32, #ve>) {
  // expected-error@+1 {{'transformer.contract' op (C1) equation is "ab->ab", expected a form like "ab,bc->ac"}}
  %0 = transformer.contract "ab->ab" %x, %x : tensor<2x4xf32, #ve>, tensor<2x4xf32, #ve> -> tensor<2x4xf32, #ve>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
func.func @f(%x: tensor<2x4xf32, #ve>) {
  // expected-error@+1 {{(C1) term "abc" has 3 letters for 'tensor<2x4xf32, #transformer.dims<vocab, embed>>'}}
  %0 = transformer.contract "abc,ab->bc" %x, %x : tensor<2x4xf32, #ve>, tensor<2x4xf32, #ve> -> tensor<2x4xf32, #ve>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
#ef = #transformer.dims<embed, ffn>
#vf = #transformer.dims<vocab, ffn>
func.func @f(%x: tensor<2x4xf32, #ve>, %w: tensor<5x3xf32, #ef>) {
  // expected-error@+1 {{'transformer.contract' op (C2) letter 'e' is dim 'embed' of size 4 and dim 'embed' of size 5}}
  %0 = transformer.contract "ve,ef->vf" %x, %w : tensor<2x4xf32, #ve>, tensor<5x3xf32, #ef> -> tensor<2x3xf32, #vf>
  return
}

// -----
#v = #transformer.dims<vocab>
#ve = #transformer.dims<vocab, embed>
#ef = #transformer.dims<embed, ffn>
#vf = #transformer.dims<vocab, ffn>
func.func @f(%x: tensor<2x4xf32, #ve>, %w: tensor<4x3xf32, #ef>, %b: tensor<2xf32, #v>) {
  // expected-error@+1 {{'transformer.contract' op (C3) bias is 'tensor<2xf32, #transformer.dims<vocab>>', expected the last dims of}}
  %0 = transformer.contract "ve,ef->vf" %x, %w bias %b : tensor<2xf32, #v> : tensor<2x4xf32, #ve>, tensor<4x3xf32, #ef> -> tensor<2x3xf32, #vf>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
#ef = #transformer.dims<embed, ffn>
#vf = #transformer.dims<vocab, ffn>
func.func @f(%x: tensor<2x4xf8E4M3FN, #ve>, %w: tensor<4x3xf32, #ef>) {
  // expected-error@+1 {{'transformer.contract' op (C4) multiplies 'tensor<2x4xf8E4M3FN, #transformer.dims<vocab, embed>>' by}}
  %0 = transformer.contract "ve,ef->vf" %x, %w : tensor<2x4xf8E4M3FN, #ve>, tensor<4x3xf32, #ef> -> tensor<2x3xf32, #vf>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
#ef = #transformer.dims<embed, ffn>
#vf = #transformer.dims<vocab, ffn>
func.func @f(%x: tensor<2x4xf8E4M3FN, #ve>, %w: tensor<4x3xf8E4M3FN, #ef>, %s: tensor<f32>) {
  // expected-error@+1 {{with 1 scales, expected two scales for two operands of f8, or none for none}}
  %0 = transformer.contract "ve,ef->vf" %x, %w scaled %s : tensor<f32> : tensor<2x4xf8E4M3FN, #ve>, tensor<4x3xf8E4M3FN, #ef> -> tensor<2x3xf32, #vf>
  return
}

// -----
#ve = #transformer.dims<vocab, embed>
func.func @f(%x: tensor<2x4xf8E4M3FN, #ve>) {
  // expected-error@+1 {{operand #0 must be tensor of f32 or bf16 whose dims have names, but got 'tensor<2x4xf8E4M3FN}}
  %0 = transformer.reduce add %x over <embed> : tensor<2x4xf8E4M3FN, #ve> -> tensor<2xf32, #transformer.dims<vocab>>
  return
}

// -----
#s = #transformer.dims<sequence>
#ve = #transformer.dims<vocab, embed>
func.func @f(%t: tensor<8x4xf32, #ve>, %i: tensor<3xi32, #s>) {
  // expected-error@+1 {{'transformer.embedding' op (C1) expected a table [rows, row dims...], ids and [id dims..., row dims...], found}}
  %0 = transformer.embedding %t, %i : tensor<8x4xf32, #ve>, tensor<3xi32, #s> -> tensor<8x4xf32, #ve>
  return
}

// -----
#s = #transformer.dims<sequence>
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%t: tensor<8x4xf32, #ve>, %i: tensor<3xi32, #s>) {
  // expected-error@+1 {{'transformer.embedding' op (C2) expected a padding_id from 0 to below 8, found 8}}
  %0 = transformer.embedding %t, %i padding 8 : tensor<8x4xf32, #ve>, tensor<3xi32, #s> -> tensor<3x4xf32, #se>
  return
}

// -----
#s = #transformer.dims<sequence>
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%t: tensor<8x4xf32, #ve>, %i: tensor<3xi32, #s>) {
  // expected-error@+1 {{'transformer.embedding' op (C2) expected a padding_id from 0 to below 8, found -1}}
  %0 = transformer.embedding %t, %i padding -1 : tensor<8x4xf32, #ve>, tensor<3xi32, #s> -> tensor<3x4xf32, #se>
  return
}

// -----
#s = #transformer.dims<sequence>
#ve = #transformer.dims<vocab, embed>
func.func @f(%i: tensor<3xi32, #s>, %g: tensor<f32>) {
  // expected-error@+1 {{'transformer.embedding_grad' op (C1) expected a table}}
  %0 = transformer.embedding_grad %i, %g : tensor<3xi32, #s>, tensor<f32> -> tensor<8x4xf32, #ve>
  return
}

// -----
#s = #transformer.dims<sequence>
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%h: tensor<3x4xf32, #se>, %w: tensor<8x4xf32, #ve>, %t: tensor<3xi32, #s>) {
  // expected-error@+1 {{'transformer.head_loss_grad' op (C1) gradients are 'tensor<8x4xf32}}
  %0:3 = transformer.head_loss_grad %h, %w, %t scale 1.0 : tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>, tensor<3xi32, #s>
      -> tensor<f32>, tensor<8x4xf32, #ve>, tensor<8x4xf32, #ve>
  return
}

// -----
#s = #transformer.dims<sequence>
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%h: tensor<3x4xf32, #se>, %w: tensor<8x4xf32, #ve>, %t: tensor<3xi32, #s>) {
  // expected-error@+1 {{'transformer.head_loss_grad' op (C2) scale is not finite}}
  %0:3 = transformer.head_loss_grad %h, %w, %t scale 0x7FF8000000000000 : tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>, tensor<3xi32, #s>
      -> tensor<f32>, tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>
  return
}

// -----
#de = #transformer.dims<head_dim, sequence>
func.func @f() {
  // expected-error@+1 {{'transformer.rotary_table' op (C1) is 'tensor<4x8xf32, #transformer.dims<head_dim, sequence>>', expected an f32 tensor of rows and, second, of another dim than "sequence"}}
  %0:2 = transformer.rotary_table inverse_frequencies [1.0, 0.5] scale 1.0 : tensor<4x8xf32, #de>
  return
}

// -----
#sd = #transformer.dims<sequence, head_dim>
func.func @f() {
  // expected-error@+1 {{'transformer.rotary_table' op (C2) the last dim is 6 but there are 2 inverse frequencies}}
  %0:2 = transformer.rotary_table inverse_frequencies [1.0, 0.5] scale 1.0 : tensor<8x6xf32, #sd>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.step_input' op (C1) is 'tensor<f32>', expected 'tensor<i32>'}}
  %0 = transformer.step_input seed : tensor<f32>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.fused' op (C1) dim 'embed' is in rows and in cols}}
  %0 = transformer.fused rows <embed> cols <embed> ins(%x : tensor<4xf32, #e>) -> tensor<4xf32, #e> {
  ^bb0(%y: tensor<4xf32, #e>):
    transformer.yield %y : tensor<4xf32, #e>
  }
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.fused' op (C1) body arguments differ in type from the operands}}
  %0 = transformer.fused rows <> cols <embed> ins(%x : tensor<4xf32, #e>) -> tensor<4xf32, #e> {
  ^bb0(%y: tensor<4xbf16, #e>):
    transformer.yield %y : tensor<4xbf16, #e>
  }
  return
}

// -----
#e = #transformer.dims<embed>
#ce = #transformer.dims<chunk, embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.fused' op (C2) results have 2 and 3 chunks}}
  %0:2 = transformer.fused rows <sequence> cols <embed> ins(%x : tensor<4xf32, #e>) -> tensor<2x4xf32, #ce>, tensor<3x4xf32, #ce> {
  ^bb0(%y: tensor<4xf32, #e>):
    transformer.yield %y, %y : tensor<4xf32, #e>, tensor<4xf32, #e>
  }
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{(C2) yields 2 values for 1 results}}
  %0 = transformer.fused rows <> cols <embed> ins(%x : tensor<4xf32, #e>) -> tensor<4xf32, #e> {
  ^bb0(%y: tensor<4xf32, #e>):
    transformer.yield %y, %y : tensor<4xf32, #e>, tensor<4xf32, #e>
  }
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.fused' op (C3) holds transformer.activate, expected map, reduce or roll}}
  %0 = transformer.fused rows <> cols <embed> ins(%x : tensor<4xf32, #e>) -> tensor<4xf32, #e> {
  ^bb0(%y: tensor<4xf32, #e>):
    %z = transformer.activate silu %y : tensor<4xf32, #e>
    transformer.yield %z : tensor<4xf32, #e>
  }
  return
}

// -----
#e = #transformer.dims<batch, ffn>
func.func @f(%x: tensor<2x4xf32, #e>, %s: tensor<i32>) {
  %0 = transformer.map ins(%x, %s : tensor<2x4xf32, #e>, tensor<i32>) -> tensor<2x4xf32, #e> {
  ^bb0(%a: f32, %b: i32):
    // expected-error@+1 {{'transformer.dropout_mask' op (C2) names dim "embed", which 'tensor<2x4xf32, #transformer.dims<batch, ffn>>' lacks}}
    %m = transformer.dropout_mask %b, %b, %b stream 1 rate 0.5 of [2, 8] at ["embed"] %b
    transformer.yield %m : f32
  }
  return
}

// -----
#e = #transformer.dims<batch, ffn>
func.func @f(%x: tensor<2x4xf32, #e>, %s: tensor<i32>) {
  %0 = transformer.map ins(%x, %s : tensor<2x4xf32, #e>, tensor<i32>) -> tensor<2x4xf32, #e> {
  ^bb0(%a: f32, %b: i32):
    // expected-error@+1 {{'transformer.stochastic_round' op (C1) has 2 offsets for 1 dims}}
    %m = transformer.stochastic_round %a by %b, %b, %b stream 1 of [2, 8] at ["ffn"] %b, %b
    transformer.yield %m : f32
  }
  return
}

// -----
#e = #transformer.dims<batch, ffn>
func.func @f(%x: tensor<2x4xf32, #e>, %s: tensor<i32>) {
  %0 = transformer.map ins(%x, %s : tensor<2x4xf32, #e>, tensor<i32>) -> tensor<2x4xf32, #e> {
  ^bb0(%a: f32, %b: i32):
    // expected-error@+1 {{'transformer.stochastic_round' op (C1) space has a dim of 3 elements, its part 4}}
    %m = transformer.stochastic_round %a by %b, %b, %b stream 1 of [2, 3] at ["ffn"] %b
    transformer.yield %m : f32
  }
  return
}

// -----
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
#bs = #transformer.dims<batch, sequence>
func.func @f(%h: tensor<1x2x4xf32, #bse>, %w: tensor<8x4xf32, #ve>, %t: tensor<1x2xi32, #bs>, %r: tensor<i32>) {
  // expected-error@+1 {{'transformer.head_loss_grad' op (C3) has some of first_row, vocabulary and vocab_axes}}
  %0:3 = "transformer.head_loss_grad"(%h, %w, %t, %r) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0>, scale = 1.0 : f64}> : (tensor<1x2x4xf32, #bse>, tensor<8x4xf32, #ve>, tensor<1x2xi32, #bs>, tensor<i32>) -> (tensor<f32>, tensor<1x2x4xf32, #bse>, tensor<8x4xf32, #ve>)
  return
}

// -----
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
#bs = #transformer.dims<batch, sequence>
func.func @f(%h: tensor<1x2x4xf32, #bse>, %w: tensor<8x4xf32, #ve>, %t: tensor<1x2xi32, #bs>, %r: tensor<i32>) {
  // expected-error@+1 {{'transformer.head_loss_grad' op (C3) has rows but no first_row}}
  %0:3 = transformer.head_loss_grad %h, %w, %t scale 1.0 rows %r : tensor<i32> : tensor<1x2x4xf32, #bse>, tensor<8x4xf32, #ve>, tensor<1x2xi32, #bs>
      -> tensor<f32>, tensor<1x2x4xf32, #bse>, tensor<8x4xf32, #ve>
  return
}

// -----
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
#bs = #transformer.dims<batch, sequence>
func.func @f(%h: tensor<1x2x4xf32, #bse>, %w: tensor<8x4xf32, #ve>, %t: tensor<1x2xi32, #bs>, %v: tensor<1x3xf32, #bs>) {
  // expected-error@+1 {{'transformer.head_loss_grad' op (C4) valid is 'tensor<1x3xf32}}
  %0:3 = transformer.head_loss_grad %h, %w, %t scale 1.0 valid %v : tensor<1x3xf32, #bs> : tensor<1x2x4xf32, #bse>, tensor<8x4xf32, #ve>, tensor<1x2xi32, #bs>
      -> tensor<f32>, tensor<1x2x4xf32, #bse>, tensor<8x4xf32, #ve>
  return
}

// -----
#se = #transformer.dims<sequence, embed>
#ef = #transformer.dims<embed, ffn>
#sf = #transformer.dims<sequence, ffn>
func.func @f(%x: tensor<4x8xf32, #se>, %w: tensor<8x16xf32, #ef>, %u: tensor<4x16xf32, #sf>) {
  // expected-error@+1 {{'transformer.product' op (C1) letter 'e' is two different dims}}
  %0 = transformer.product "es,ef->sf" %x, %w gelu : tensor<4x8xf32, #se>, tensor<8x16xf32, #ef> -> tensor<4x16xf32, #sf>
  return
}

// -----
#se = #transformer.dims<sequence, embed>
#ef = #transformer.dims<embed, ffn>
#sf = #transformer.dims<sequence, ffn>
func.func @f(%x: tensor<4x8xf32, #se>, %w: tensor<8x16xf32, #ef>, %u: tensor<4x16xf32, #sf>) {
  // expected-error@+1 {{'transformer.product' op (C2) has an input, expected one of the result's type beside gelu_grad}}
  %0 = transformer.product "se,ef->sf" %x, %w at %u : tensor<4x16xf32, #sf> gelu : tensor<4x8xf32, #se>, tensor<8x16xf32, #ef> -> tensor<4x16xf32, #sf>
  return
}

// -----
#se = #transformer.dims<sequence, embed>
#ef = #transformer.dims<embed, ffn>
#sf = #transformer.dims<sequence, ffn>
func.func @f(%x: tensor<4x8xf32, #se>, %w: tensor<8x16xf32, #ef>, %u: tensor<4x16xf32, #sf>) {
  // expected-error@+1 {{'transformer.product' op (C2) has no input}}
  %0 = transformer.product "se,ef->sf" %x, %w gelu_grad : tensor<4x8xf32, #se>, tensor<8x16xf32, #ef> -> tensor<4x16xf32, #sf>
  return
}

// -----
#se = #transformer.dims<sequence, embed>
#ef = #transformer.dims<embed, ffn>
#sf = #transformer.dims<sequence, ffn>
func.func @f(%x: tensor<4x8xf32, #se>, %w: tensor<8x16xf32, #ef>, %u: tensor<4x16xf32, #sf>) {
  // expected-error@+1 {{'transformer.product' op (C3) has no aux, expected 'tensor<1x4xf32, #transformer.dims<chunk, sequence>>'}}
  %0 = transformer.product "se,ef->sf" %x, %w sum_lhs : tensor<4x8xf32, #se>, tensor<8x16xf32, #ef> -> tensor<4x16xf32, #sf>
  return
}

// -----
#se = #transformer.dims<sequence, embed>
#ef = #transformer.dims<embed, ffn>
#sf = #transformer.dims<sequence, ffn>
func.func @f(%x: tensor<4x8xf32, #se>, %w: tensor<8x16xf32, #ef>, %u: tensor<4x16xf32, #sf>) {
  // expected-error@+1 {{'transformer.product' op (C3) has aux of 'tensor<4x16xf32, #transformer.dims<sequence, ffn>>', expected none}}
  %0, %1 = transformer.product "se,ef->sf" %x, %w at %u : tensor<4x16xf32, #sf> gelu_grad : tensor<4x8xf32, #se>, tensor<8x16xf32, #ef> -> tensor<4x16xf32, #sf>, tensor<4x16xf32, #sf>
  return
}

// -----
func.func @table(%p: tensor<4xi32, #transformer.dims<sequence>>) {
  // expected-error@+1 {{'transformer.rotary_table' op (C3) has positions 'tensor<4xi32, #transformer.dims<sequence>>', expected 'tensor<8xi32, #transformer.dims<sequence>>'}}
  %c, %s = transformer.rotary_table of %p : tensor<4xi32, #transformer.dims<sequence>> inverse_frequencies [1.0, 0.01] scale 1.0 : tensor<8x4xf32, #transformer.dims<sequence, head_dim>>
  return
}
