// Tensors that the dialect has no meaning for, also hostile ones: an error each,
// before anything counts their elements.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{dim name 'a' occurs twice; names within a tensor are distinct}}
func.func private @f(tensor<2x2xf32, #transformer.dims<a, a>>)

// -----
// expected-error@+1 {{tensor has 2 dims but 1 dim names}}
func.func private @f(tensor<2x2xf32, #transformer.dims<a>>)

// -----
// expected-error@+1 {{tensor of shape [99999999999, 99999999999] has 2^63 bytes or more}}
func.func private @f(tensor<99999999999x99999999999xf32, #transformer.dims<a, b>>)

// -----
// expected-error@+1 {{tensor of shape [2, 0] is empty}}
func.func private @f(tensor<2x0xf32, #transformer.dims<a, b>>)

// -----
// expected-error@+1 {{tensor without dims has dim names}}
func.func private @f(tensor<f32, #transformer.dims<>>)

// -----
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{operand #0 must be tensor of f32 or bf16 whose dims have names, but got 'tensor<4xf32>'}}
  %0 = transformer.reduce add %x over <> : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
func.func @f(%x: tensor<4xf32, "embed">) {
  // expected-error@+1 {{operand #0 must be tensor of f32 or bf16 whose dims have names, but got 'tensor<4xf32, "embed">'}}
  %0 = transformer.activate silu %x : tensor<4xf32, "embed">
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xindex, #e>) {
  // expected-error@+1 {{operand #0 must be tensor of f32, bf16, f8, i8 or i32 whose dims have names, but got 'tensor<4xindex}}
  %0 = transformer.slice %x dim "embed" offset 0 : tensor<4xindex, #e> -> tensor<2xindex, #e>
  return
}

// -----
#s = #transformer.dims<sequence>
#ve = #transformer.dims<vocab, embed>
#se = #transformer.dims<sequence, embed>
func.func @f(%t: tensor<8x4xf32, #ve>, %i: tensor<3xf32, #s>) {
  // expected-error@+1 {{operand #1 must be tensor of i32 whose dims have names, but got 'tensor<3xf32}}
  %0 = transformer.embedding %t, %i : tensor<8x4xf32, #ve>, tensor<3xf32, #s> -> tensor<3x4xf32, #se>
  return
}

// -----
// expected-error@+1 {{expected}}
func.func private @f(tensor<-4xf32, #transformer.dims<a>>)
