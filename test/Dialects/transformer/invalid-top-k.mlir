// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
func.func @f(%a: tensor<3x8xbf16, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C1) expected f32 scores [row dims..., experts] and choices [row dims..., another dim], found 'tensor<3x8xbf16}}
  %0 = transformer.top_k %a : tensor<3x8xbf16, #sn> -> tensor<3x2xi32, #sk>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op result #0 must be tensor of i32}}
  %0 = transformer.top_k %a : tensor<3x8xf32, #sn> -> tensor<3x2xf32, #sk>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C1) expected f32 scores}}
  %0 = transformer.top_k %a : tensor<3x8xf32, #sn> -> tensor<4x2xi32, #sk>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C1) expected f32 scores}}
  %0 = transformer.top_k %a : tensor<3x8xf32, #sn> -> tensor<3x2xi32, #sn>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C1) expected f32 scores}}
  %0 = transformer.top_k %a : tensor<3x8xf32, #sn> -> tensor<2xi32, #transformer.dims<choices>>
  return
}

// -----
func.func @f(%a: tensor<f32>) {
  // expected-error@+1 {{'transformer.top_k' op (C1) expected f32 scores}}
  %0 = transformer.top_k %a : tensor<f32> -> tensor<i32>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C2) has 3 groups of 8 experts, expected a divisor of these}}
  %0 = transformer.top_k %a groups 3 kept 1 by maximum : tensor<3x8xf32, #sn> -> tensor<3x2xi32, #sk>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C2) has 0 groups of 8 experts, expected a divisor of these}}
  %0 = transformer.top_k %a groups 0 kept 1 by maximum : tensor<3x8xf32, #sn> -> tensor<3x2xi32, #sk>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C2) keeps 5 groups, expected 1 to 4}}
  %0 = transformer.top_k %a groups 4 kept 5 by maximum : tensor<3x8xf32, #sn> -> tensor<3x2xi32, #sk>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C2) keeps 0 groups, expected 1 to 4}}
  %0 = transformer.top_k %a groups 4 kept 0 by maximum : tensor<3x8xf32, #sn> -> tensor<3x2xi32, #sk>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C2) adds the two best experts of a group, but a group has one}}
  %0 = transformer.top_k %a groups 8 kept 2 by two_best : tensor<3x8xf32, #sn> -> tensor<3x2xi32, #sk>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C3) makes 3 choices, expected 1 to 2, the experts of 1 of the groups}}
  %0 = transformer.top_k %a groups 4 kept 1 by maximum : tensor<3x8xf32, #sn> -> tensor<3x3xi32, #sk>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
func.func @f(%a: tensor<3x8xf32, #sn>) {
  // expected-error@+1 {{'transformer.top_k' op (C3) makes 9 choices, expected 1 to 8}}
  %0 = transformer.top_k %a : tensor<3x8xf32, #sn> -> tensor<3x9xi32, #sk>
  return
}

// -----
#sn = #transformer.dims<sequence, experts>
#sk = #transformer.dims<sequence, choices>
#s = #transformer.dims<sequence>
func.func @f(%a: tensor<3x8xf32, #sn>, %v: tensor<4xf32, #s>) {
  // expected-error@+1 {{'transformer.top_k' op (C4) valid is 'tensor<4xf32, #transformer.dims<sequence>>', expected 'tensor<3xf32, #transformer.dims<sequence>>'}}
  %0 = transformer.top_k %a valid %v : tensor<4xf32, #s> : tensor<3x8xf32, #sn> -> tensor<3x2xi32, #sk>
  return
}
