// What attention and its gradient refuse.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!kv = tensor<1x6x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q, %k: !kv) {
  // expected-error@+1 {{'transformer.attention' op (C1) expected q, result [batch, sequence, heads, head_dim] and k, v}}
  %0:2 = transformer.attention %q, %k, %k scale 0.5 : !q, !kv, !kv -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!kv = tensor<1x8x3x2xf32, #transformer.dims<batch, sequence, kv_heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q, %k: !kv) {
  // expected-error@+1 {{(C1) 4 heads are not divisible by 3 kv_heads}}
  %0:2 = transformer.attention %q, %k, %k scale 0.5 : !q, !kv, !kv -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x8x4xf32, #transformer.dims<batch, sequence, heads>>
func.func @f(%q: !q) {
  // expected-error@+1 {{(C1) lse is 'tensor<1x8x4xf32, #transformer.dims<batch, sequence, heads>>', expected 'tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>'}}
  %0:2 = transformer.attention %q, %q, %q scale 0.5 : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q) {
  // expected-error@+1 {{'transformer.attention' op (C2) dropout rate is 1.500000e+00, expected at least 0 and less than 1}}
  %0:2 = transformer.attention %q, %q, %q scale 0.5 dropout "a" rate 1.5 : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q, %s: tensor<i32>) {
  // expected-error@+1 {{(C2) has 1 random operands at rate 5.000000e-01, expected 3}}
  %0:2 = transformer.attention %q, %q, %q random(%s : tensor<i32>) scale 0.5 dropout "a" rate 0.5 : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q) {
  // expected-error@+1 {{(C2) cap is -1.000000e+00, expected a finite number from 0}}
  %0:2 = transformer.attention %q, %q, %q scale 0.5 cap -1.0 : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q) {
  // expected-error@+1 {{(C2) window is -1, expected at least 0}}
  %0:2 = transformer.attention %q, %q, %q scale 0.5 window -1 : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q, %l: !lse) {
  // expected-error@+1 {{'transformer.attention_grad' op (C1) gradient is 'tensor<1x4x8xf32}}
  %0:3 = transformer.attention_grad %q, %q, %q, %q, %l, %q scale 0.5 : !q, !q, !q, !q, !lse, !q -> !q, !lse, !q
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q, %l: !lse) {
  // expected-error@+1 {{'transformer.attention_grad' op (C2) has 0 random operands at rate 5.000000e-01, expected 3}}
  %0:3 = transformer.attention_grad %q, %q, %q, %q, %l, %q scale 0.5 dropout "a" rate 0.5 : !q, !q, !q, !q, !lse, !q -> !q, !q, !q
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
!begins = tensor<1x4xi32, #transformer.dims<batch, sequence>>
func.func @f(%q: !q, %begins: !begins) {
  // expected-error@+1 {{(C1) documents is 'tensor<1x4xi32, #transformer.dims<batch, sequence>>', expected 'tensor<1x8xi32, #transformer.dims<batch, sequence>>'}}
  %0:2 = transformer.attention %q, %q, %q documents(%begins : !begins) causal scale 0.5 : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
!begins = tensor<1x8xi32, #transformer.dims<batch, sequence>>
func.func @f(%q: !q, %begins: !begins) {
  // expected-error@+1 {{(C1) has documents but is not causal; where a document ends is not said, so a query would see those that follow}}
  %0:2 = transformer.attention %q, %q, %q documents(%begins : !begins) scale 0.5 : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x4x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!kv = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x4xf32, #transformer.dims<batch, heads, sequence>>
!rows = tensor<8xi32, #transformer.dims<sequence>>
func.func @f(%q: !q, %k: !kv, %rows: !rows) {
  // expected-error@+1 {{(C1) positions is 'tensor<8xi32, #transformer.dims<sequence>>', expected 'tensor<4xi32, #transformer.dims<sequence>>'}}
  %0:2 = transformer.attention %q, %k, %k positions(%rows : !rows) causal scale 0.5 : !q, !kv, !kv -> !q, !lse
  return
}

// -----
!q = tensor<1x4x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!kv = tensor<1x8x2x2xf32, #transformer.dims<batch, sequence, kv_heads, head_dim>>
!lse = tensor<1x4x4xf32, #transformer.dims<batch, heads, sequence>>
!rows = tensor<4xi32, #transformer.dims<sequence>>
func.func @f(%q: !q, %k: !kv, %rows: !rows) {
  // expected-error@+1 {{(C1) keys is 'tensor<4xi32, #transformer.dims<sequence>>', expected 'tensor<8xi32, #transformer.dims<sequence>>'}}
  %0:2 = transformer.attention %q, %k, %k positions(%rows : !rows) keys(%rows : !rows) causal scale 0.5 keys 16 : !q, !kv, !kv -> !q, !lse
  return
}

// -----
!q = tensor<1x4x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x4xf32, #transformer.dims<batch, heads, sequence>>
!rows = tensor<4xi32, #transformer.dims<sequence>>
func.func @f(%q: !q, %rows: !rows) {
  // expected-error@+1 {{'transformer.attention' op (C3) has keys of 8 and no positions; keys stand beside positions and are of one key or more}}
  %0:2 = transformer.attention %q, %q, %q keys(%rows : !rows) causal scale 0.5 keys 8 : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x4x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x4xf32, #transformer.dims<batch, heads, sequence>>
!rows = tensor<4xi32, #transformer.dims<sequence>>
func.func @f(%q: !q, %lse: !lse, %rows: !rows) {
  // expected-error@+1 {{'transformer.attention_grad' op (C3) has keys of 0; keys stand beside positions and are of one key or more}}
  %0:3 = transformer.attention_grad %q, %q, %q, %q, %lse, %q positions(%rows : !rows) keys(%rows : !rows) causal scale 0.5 : !q, !q, !q, !q, !lse, !q -> !q, !q, !q
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q) {
  // expected-error@+1 {{(C4) has the attribute 'window', which means nothing on it; expected window, dropout and the like before the types, as `scale` is}}
  %0:2 = transformer.attention %q, %q, %q causal scale 0.5 {window = 4 : i64} : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q, %lse: !lse) {
  // expected-error@+1 {{(C4) has the attribute 'dropout_rate', which means nothing on it}}
  %0:3 = transformer.attention_grad %q, %q, %q, %q, %lse, %q causal scale 0.5 {dropout_rate = 0.1} : !q, !q, !q, !q, !lse, !q -> !q, !q, !q
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q) {
  // expected-error@+1 {{expected 'scale'}}
  %0:2 = transformer.attention %q, %q, %q causal window 4 : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q) {
  // expected-error@+1 {{'transformer.attention' op (C4) has the attribute 'window', which means nothing on it}}
  %0:2 = transformer.attention %q, %q, %q scale 0.5 {window = 3 : i64} : !q, !q, !q -> !q, !lse
  return
}

// -----
!q = tensor<1x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x4x8xf32, #transformer.dims<batch, heads, sequence>>
func.func @f(%q: !q, %lse: !lse) {
  // expected-error@+1 {{'transformer.attention_grad' op (C4) has the attribute 'causal', which means nothing on it}}
  %0:3 = transformer.attention_grad %q, %q, %q, %q, %lse, %q scale 0.5 {causal} : !q, !q, !q, !q, !lse, !q -> !q, !q, !q
  return
}
