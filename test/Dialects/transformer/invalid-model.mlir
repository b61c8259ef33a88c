// What the verifiers of model ops refuse, by the labels of the descriptions.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C1) is 'tensor<?xf32, #transformer.dims<embed>>', expected a static shape}}
  %0 = transformer.parameter "w" init <constant, 1.0> : tensor<?xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C2) file_shape has 6 elements, the parameter 4}}
  %0 = transformer.parameter "w" init <constant, 1.0> file_shape [2, 3] : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{(C2) shape [-2, -2] has an empty dim}}
  %0 = transformer.parameter "w" init <constant, 1.0> file_shape [-2, -2] : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{(C2) shape [4294967296, 4294967296] has an empty dim or 2^63 elements or more}}
  %0 = transformer.parameter "w" init <constant, 1.0> file_shape [4294967296, 4294967296] : tensor<4xf32, #e>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C8) is untrained and 'tensor<8xbf16, #transformer.dims<embed>>', expected f32}}
  %0 = transformer.parameter "b" untrained init <constant, 0.0> : tensor<8xbf16, #transformer.dims<embed>>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C3) has an empty name}}
  %0 = transformer.parameter "" init <constant, 1.0> : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C4) init has standard deviation -1.000000e+00, expected at least 0}}
  %0 = transformer.parameter "w" init <normal, 0.0, -1.0> : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{(C4) init is uniform from 2.000000e+00 to 1.000000e+00, expected low before high}}
  %0 = transformer.parameter "w" init <uniform, 2.0, 1.0> : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{init is 'gauss', expected constant, normal or uniform}}
  %0 = transformer.parameter "w" init <gauss, 2.0, 1.0> : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C5) is of layer 2147483647, expected 0 to 65535}}
  %0 = transformer.parameter "w" layer 2147483647 init <constant, 1.0> : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C5) is of layer -1, expected 0 to 65535}}
  %0 = transformer.parameter "w" layer -1 init <constant, 1.0> : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
#se = #transformer.dims<sequence, embed>
func.func @f(%x: tensor<4x8xf32, #se>, %y: tensor<7xf32, #e>) {
  // expected-error@+1 {{'transformer.add' op (C1) operand 'tensor<7xf32, #transformer.dims<embed>>' has a dim that}}
  %0 = transformer.add %x, %y : tensor<4x8xf32, #se>, tensor<7xf32, #e> -> tensor<4x8xf32, #se>
  return
}

// -----
#e = #transformer.dims<embed>
#f = #transformer.dims<ffn>
func.func @f(%x: tensor<8xf32, #e>, %y: tensor<8xf32, #f>) {
  // expected-error@+1 {{'transformer.sub' op (C1) operand 'tensor<8xf32, #transformer.dims<ffn>>' has a dim that}}
  %0 = transformer.sub %x, %y : tensor<8xf32, #e>, tensor<8xf32, #f> -> tensor<8xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
#f = #transformer.dims<ffn>
func.func @f(%x: tensor<8xf32, #f>, %y: tensor<8xf32, #e>) {
  // expected-error@+1 {{'transformer.mul' op (C1) operand 'tensor<8xf32, #transformer.dims<ffn>>' has a dim that}}
  %0 = transformer.mul %x, %y : tensor<8xf32, #f>, tensor<8xf32, #e> -> tensor<8xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<8xi32, #e>) {
  // expected-error@+1 {{operand #0 must be tensor of f32 or bf16 whose dims have names, but got 'tensor<8xi32}}
  %0 = transformer.activate silu %x : tensor<8xi32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
#s = #transformer.dims<sequence>
func.func @f(%x: tensor<8xf32, #s>, %w: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.layer_norm' op (C1) weight 'tensor<4xf32, #transformer.dims<embed>>' has a dim that}}
  %0 = transformer.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<8xf32, #s>, tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.layer_norm' op (C2) epsilon is 0.000000e+00, expected a positive number}}
  %0 = transformer.layer_norm %x, %x, %x epsilon 0.0 : tensor<4xf32, #e>, tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<?xf32, #e>) {
  // expected-error@+1 {{'transformer.rms_norm' op (C1) weight is 'tensor<?xf32, #transformer.dims<embed>>', expected a static shape}}
  %0 = transformer.rms_norm %x, %x epsilon 1.0e-5 : tensor<?xf32, #e>, tensor<?xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.rms_norm' op (C2) epsilon is -1.000000e-05, expected a positive number}}
  %0 = transformer.rms_norm %x, %x epsilon -1.0e-5 : tensor<4xf32, #e>, tensor<4xf32, #e>
  return
}

// -----
#sd = #transformer.dims<sequence, head_dim>
func.func @f(%x: tensor<2x4xf32, #sd>) {
  // expected-error@+1 {{'transformer.rope' op (C2) the last dim is 4 but there are 0 inverse frequencies, expected 1 to 2}}
  %0 = transformer.rope %x inverse_frequencies [] scale 1.0 : tensor<2x4xf32, #sd>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<?xf32, #e>) {
  // expected-error@+1 {{'transformer.standardize' op (C1) input is 'tensor<?xf32, #transformer.dims<embed>>', expected a last dim with a size}}
  %0 = transformer.standardize %x epsilon 1.0e-5 : tensor<?xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.standardize' op (C2) epsilon is 0.000000e+00, expected a positive number}}
  %0 = transformer.standardize %x epsilon 0.0 : tensor<4xf32, #e>
  return
}

// -----
#hd = #transformer.dims<heads, head_dim>
func.func @f(%x: tensor<2x4xf32, #hd>) {
  // expected-error@+1 {{'transformer.rope' op (C1) input is 'tensor<2x4xf32, #transformer.dims<heads, head_dim>>', expected a dim `sequence` and, last, another}}
  %0 = transformer.rope %x inverse_frequencies [1.0, 0.5] scale 1.0 : tensor<2x4xf32, #hd>
  return
}

// -----
#sd = #transformer.dims<sequence, head_dim>
func.func @f(%x: tensor<2x4xf32, #sd>) {
  // expected-error@+1 {{'transformer.rope' op (C2) the last dim is 4 but there are 3 inverse frequencies, expected 1 to 2}}
  %0 = transformer.rope %x inverse_frequencies [1.0, 0.5, 0.25] scale 1.0 : tensor<2x4xf32, #sd>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.dropout' op (C1) rate is 1.000000e+00, expected at least 0 and less than 1}}
  %0 = transformer.dropout %x "d" rate 1.0 : tensor<4xf32, #e>
  return
}

// -----
#s = #transformer.dims<sequence>
#b = #transformer.dims<batch>
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%h: tensor<3x4xf32, #se>, %w: tensor<8x4xf32, #ve>, %t: tensor<3xi32, #b>) {
  // expected-error@+1 {{'transformer.head_loss' op (C1) targets are 'tensor<3xi32, #transformer.dims<batch>>', expected 'tensor<3xi32, #transformer.dims<sequence>>' to match hidden}}
  %0 = transformer.head_loss %h, %w, %t scale 1.0 : tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>, tensor<3xi32, #b> -> tensor<f32>
  return
}

// -----
#s = #transformer.dims<sequence>
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%h: tensor<3x4xf32, #se>, %w: tensor<8x5xf32, #ve>, %t: tensor<3xi32, #s>) {
  // expected-error@+1 {{does not end in hidden's last dim 'embed' of size 4}}
  %0 = transformer.head_loss %h, %w, %t scale 1.0 : tensor<3x4xf32, #se>, tensor<8x5xf32, #ve>, tensor<3xi32, #s> -> tensor<f32>
  return
}

// -----
#s = #transformer.dims<sequence>
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%h: tensor<3x4xf32, #se>, %w: tensor<8x4xf32, #ve>, %t: tensor<3xi32, #s>) {
  // expected-error@+1 {{'transformer.head_loss' op (C2) cap is -3.000000e+00, expected a finite number from 0}}
  %0 = transformer.head_loss %h, %w, %t scale 1.0 cap -3.0 : tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>, tensor<3xi32, #s> -> tensor<f32>
  return
}

// -----
#s = #transformer.dims<sequence>
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%h: tensor<3x4xf32, #se>, %w: tensor<8x4xf32, #ve>, %t: tensor<3xi32, #s>) {
  // expected-error@+1 {{'transformer.head_loss' op (C2) scale is not finite}}
  %0 = transformer.head_loss %h, %w, %t scale 0x7FF0000000000000 : tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>, tensor<3xi32, #s> -> tensor<f32>
  return
}

// -----
#s = #transformer.dims<sequence>
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
func.func @f(%h: tensor<3x4xf32, #se>, %w: tensor<8x4xf32, #ve>, %t: tensor<3xi32, #s>, %n: tensor<3xf32, #s>) {
  // expected-error@+1 {{'transformer.head_loss' op (C2) counted is 'tensor<3xf32, #transformer.dims<sequence>>', expected tensor<f32>}}
  %0 = transformer.head_loss %h, %w, %t counted(%n : tensor<3xf32, #s>) scale 1.0 : tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>, tensor<3xi32, #s> -> tensor<f32>
  return
}

// -----
#nfe = #transformer.dims<experts, expert_ffn, embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C6) file "w.{}" counts dim 3, the parameter has 3}}
  %0 = transformer.parameter "w" init <constant, 1.0> files [#transformer.file<"w.{}" along 3>] : tensor<8x6x4xf32, #nfe>
  return
}

// -----
#nfe = #transformer.dims<experts, expert_ffn, embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C6) file "w.x{}" counts dim 0, expected {} once in the name, alone between dots}}
  %0 = transformer.parameter "w" init <constant, 1.0> files [#transformer.file<"w.x{}" along 0>] : tensor<8x6x4xf32, #nfe>
  return
}

// -----
#nfe = #transformer.dims<experts, expert_ffn, embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C6) files hold 96 elements, the parameter has 192: expected each in one file}}
  %0 = transformer.parameter "w" init <constant, 1.0> files [#transformer.file<"w.{}" along 0 at [0, 3, 0] size [8, 3, 4]>] : tensor<8x6x4xf32, #nfe>
  return
}

// -----
#nfe = #transformer.dims<experts, expert_ffn, embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C6) files "w.{}" and "v.{}" both hold the element [0,3,0]}}
  %0 = transformer.parameter "w" init <constant, 1.0> files [#transformer.file<"w.{}" along 0 at [0, 0, 0] size [8, 4, 4]>, #transformer.file<"v.{}" along 0 at [0, 3, 0] size [8, 3, 4]>] : tensor<8x6x4xf32, #nfe>
  return
}

// -----
#nfe = #transformer.dims<experts, expert_ffn, embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C6) file "w.{}" has tensors of the shape [4,7], expected as many elements as in [6,4]}}
  %0 = transformer.parameter "w" init <constant, 1.0> files [#transformer.file<"w.{}" along 0 shape [4, 7]>] : tensor<8x6x4xf32, #nfe>
  return
}

// -----
#nfe = #transformer.dims<experts, expert_ffn, embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C6) files "w.{}" and "w.3" may be of the same name}}
  %0 = transformer.parameter "w" init <constant, 1.0> files [#transformer.file<"w.{}" along 0 at [0, 0, 0] size [8, 3, 4]>, #transformer.file<"w.3" at [0, 3, 0] size [8, 3, 4]>] : tensor<8x6x4xf32, #nfe>
  return
}

// -----
#nfe = #transformer.dims<experts, expert_ffn, embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C6) file "w.all" does not lie in one file of another form}}
  %0 = transformer.parameter "w" init <constant, 1.0> files [#transformer.file<"w.all">] or [[#transformer.file<"w.{}" along 0>]] : tensor<8x6x4xf32, #nfe>
  return
}

// -----
#nfe = #transformer.dims<experts, expert_ffn, embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C7) files "w.{}" and "v.{}" differ in whether they have two dims or more}}
  %0 = transformer.parameter "w" init <constant, 1.0> files [#transformer.file<"w.{}" along 0 at [0, 0, 0] size [8, 3, 4]>, #transformer.file<"v.{}" along 0 at [0, 3, 0] size [8, 3, 4] shape [12]>] : tensor<8x6x4xf32, #nfe>
  return
}

// -----
#nfe = #transformer.dims<experts, expert_ffn, embed>
func.func @f() {
  // expected-error@+1 {{'transformer.parameter' op (C7) has files and file_shape: each file has a shape of its own}}
  %0 = transformer.parameter "w" init <constant, 1.0> file_shape [192] files [#transformer.file<"w.{}" along 0>] : tensor<8x6x4xf32, #nfe>
  return
}

// -----
func.func @f(%v: tensor<2xf32, #transformer.dims<batch>>) {
  // expected-error@+1 {{'transformer.auxiliary_loss' op (C1) value is 'tensor<2xf32, #transformer.dims<batch>>', expected tensor<f32>}}
  transformer.auxiliary_loss "extra" coefficient 1.0, %v : tensor<2xf32, #transformer.dims<batch>>
  return
}

// -----
func.func @f(%v: tensor<f32>) {
  // expected-error@+1 {{'transformer.auxiliary_loss' op (C1) coefficient is not finite}}
  transformer.auxiliary_loss "extra" coefficient 0x7FF0000000000000, %v : tensor<f32>
  return
}

// -----
func.func @f(%v: tensor<f32>) {
  // expected-error@+1 {{'transformer.auxiliary_loss' op (C2) name is 'Extra', expected at most 32 lower-case letters, digits and _, a letter first}}
  transformer.auxiliary_loss "Extra" coefficient 1.0, %v : tensor<f32>
  return
}
