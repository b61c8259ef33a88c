// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

func.func @f() {
  // expected-error@+1 {{'transformer.step_input' op (C1) is 'tensor<i32>', expected 'tensor<f32>'}}
  %0 = transformer.step_input learning_rate : tensor<i32>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.step_input' op (C2) has no base, expected one from 0 to below 1}}
  %0 = transformer.step_input bias_correction : tensor<f32>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.step_input' op (C2) has base 1.000000e+00, expected one from 0 to below 1}}
  %0 = transformer.step_input bias_correction base 1.0 : tensor<f32>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.step_input' op (C2) has base 5.000000e-01, expected none}}
  %0 = transformer.step_input learning_rate base 0.5 : tensor<f32>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.state' op (C1) optimizer has no slot, expected a name of at most 32 lower-case letters, digits and _, a letter first}}
  %0 = transformer.state optimizer "w" : tensor<8xf32, #transformer.dims<embed>>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.state' op (C1) optimizer has slot 'First moment', expected a name of}}
  %0 = transformer.state optimizer "w" slot "First moment" : tensor<8xf32, #transformer.dims<embed>>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.state' op (C1) master has slot 'copy', expected none}}
  %0 = transformer.state master "w" slot "copy" : tensor<8xf32, #transformer.dims<embed>>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.state' op (C2) master is initially 1.000000e+00 : f32, expected no initial value}}
  %0 = transformer.state master "w" initially 1.0 : tensor<8xf32, #transformer.dims<embed>>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.state' op (C2) optimizer is initially 0x7F800000 : f32, expected a finite number}}
  %0 = transformer.state optimizer "w" slot "squares" initially 0x7F800000 : tensor<8xf32, #transformer.dims<embed>>
  return
}

// -----
func.func @f(%x: tensor<8xf32, #transformer.dims<embed>>) {
  // expected-error@+1 {{'transformer.assign' op (C1) weight has slot 'copy', expected none}}
  transformer.assign weight "w" slot "copy", %x : tensor<8xf32, #transformer.dims<embed>>
  return
}

// -----
func.func @f(%x: tensor<8xf32, #transformer.dims<embed>>) {
  // expected-error@+1 {{'transformer.accumulate' op (C1) adds to master, expected gradient, loss, magnitude or metric}}
  transformer.accumulate master "w", %x : tensor<8xf32, #transformer.dims<embed>>
  return
}

// -----
func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{'transformer.accumulate' op (C2) magnitude has no slot, expected a name of at most 32}}
  transformer.accumulate magnitude "w", %x : tensor<f32>
  return
}

// -----
func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{'transformer.accumulate' op (C2) gradient has slot 'now', expected none}}
  transformer.accumulate gradient "w" slot "now", %x : tensor<f32>
  return
}

// -----
func.func @f(%x: tensor<8xf32, #transformer.dims<embed>>) {
  // expected-error@+1 {{'transformer.accumulate' op (C3) adds up gradient exactly, expected a metric}}
  transformer.accumulate gradient "w" exact, %x : tensor<8xf32, #transformer.dims<embed>>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.state' op (C3) gradient is 'tensor<8xi32, #transformer.dims<embed>>', expected f32 or bf16}}
  %0 = transformer.state gradient "w" : tensor<8xi32, #transformer.dims<embed>>
  return
}

// -----
func.func @f(%x: tensor<8xi32, #transformer.dims<embed>>) {
  // expected-error@+1 {{'transformer.assign' op (C2) gradient is 'tensor<8xi32, #transformer.dims<embed>>', expected f32 or bf16}}
  transformer.assign gradient "w", %x : tensor<8xi32, #transformer.dims<embed>>
  return
}

// -----
func.func @f() {
  // expected-error@+1 {{'transformer.stage_list' op (C1) is of stage -1, expected one from 0 to 65535}}
  transformer.stage_list forward stage -1
  return
}
