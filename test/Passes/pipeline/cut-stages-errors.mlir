// RUN: meshwork-opt %s -split-input-file -pipeline-cut-stages="axis=pp" -verify-diagnostics

// More stages than layers.
#e = #transformer.dims<embed>
// expected-error@+1 {{the pipeline has 2 stages, and the model 1 layer; expected at least one layer for each, so at most 1 stage}}
module attributes {mesh.mesh = #mesh.mesh<"pp"=2>} {
func.func @microbatch() {
  %w0 = transformer.parameter "w.0" layer 0 init <constant, 1.0> : tensor<8xf32, #e>
  return
}
func.func @update() {
  return
}
}

// -----

// All ops of layer 0 also read a parameter of layer 1.
#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"pp"=2>} {
// expected-error@+1 {{computes nothing in layer 0 of 2; expected something in each}}
func.func @microbatch() {
  %w0 = transformer.parameter "w.0" layer 0 init <constant, 1.0> : tensor<8xf32, #e>
  %w1 = transformer.parameter "w.1" layer 1 init <constant, 1.0> : tensor<8xf32, #e>
  %x = transformer.map ins(%w0, %w1 : tensor<8xf32, #e>, tensor<8xf32, #e>) {transformer.layer = 1 : i64} -> tensor<8xf32, #e> {
  ^bb0(%a: f32, %b: f32):
    transformer.yield %a : f32
  }
  return
}
func.func @update() {
  return
}
}

// -----

// A layer reads what a later one makes.
#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"pp"=2>} {
func.func @microbatch() {
  %w0 = transformer.parameter "w.0" layer 0 init <constant, 1.0> : tensor<8xf32, #e>
  %w1 = transformer.parameter "w.1" layer 1 init <constant, 1.0> : tensor<8xf32, #e>
  %x = transformer.map ins(%w1 : tensor<8xf32, #e>) {transformer.layer = 1 : i64} -> tensor<8xf32, #e> {
  ^bb0(%a: f32):
    transformer.yield %a : f32
  }
  // expected-error@+1 {{is of stage 0 of the pipeline and reads what stage 1 makes, which comes later; layers must be used in their order}}
  %y = transformer.map ins(%x : tensor<8xf32, #e>) {transformer.layer = 0 : i64} -> tensor<8xf32, #e> {
  ^bb0(%a: f32):
    transformer.yield %a : f32
  }
  return
}
func.func @update() {
  return
}
}

// -----

// A gradient that no update of the stage would read.
#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"pp"=2>} {
func.func @microbatch() {
  %w0 = transformer.parameter "w.0" layer 0 init <constant, 1.0> : tensor<8xf32, #e>
  %w1 = transformer.parameter "w.1" layer 1 init <constant, 1.0> : tensor<8xf32, #e>
  %x = transformer.map ins(%w0 : tensor<8xf32, #e>) {transformer.layer = 0 : i64} -> tensor<8xf32, #e> {
  ^bb0(%a: f32):
    transformer.yield %a : f32
  }
  %y = transformer.map ins(%x, %w1 : tensor<8xf32, #e>, tensor<8xf32, #e>) {transformer.layer = 1 : i64} -> tensor<8xf32, #e> {
  ^bb0(%a: f32, %b: f32):
    transformer.yield %a : f32
  }
  transformer.accumulate gradient "w.1", %y : tensor<8xf32, #e>
  // expected-error@+1 {{is of stages that do not have 'w.1'}}
  transformer.accumulate gradient "w.1", %x : tensor<8xf32, #e>
  return
}
func.func @update() {
  return
}
}
