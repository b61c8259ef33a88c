// RUN: meshwork-opt %s -split-input-file -meshwork-gate="phase=input" -verify-diagnostics

// expected-error@+1 {{expected a model: a function @loss of %tokens and %targets with one block}}
module {
}

// -----

#bs = #transformer.dims<batch, sequence>
module {
  func.func @loss(%tokens: tensor<?x?xi32, #bs>, %targets: tensor<?x?xi32, #bs>) -> tensor<f32> {
    // expected-note@+1 {{by this one}}
    %a = transformer.parameter "w" init <constant, 1.0> : tensor<4xf32, #transformer.dims<embed>>
    // expected-error@+1 {{(C3) name "w" is taken; tied weights are one parameter used twice}}
    %b = transformer.parameter "w" init <constant, 1.0> : tensor<4xf32, #transformer.dims<embed>>
    // expected-error@+1 {{stands in a model; models consist of transformer ops}}
    %c = arith.constant dense<0.0> : tensor<f32>
    return %c : tensor<f32>
  }
}

// -----

#bs = #transformer.dims<batch, sequence>
module {
  func.func @loss(%tokens: tensor<?x?xi32, #bs>, %targets: tensor<?x?xi32, #bs>) -> tensor<f32> {
    %a = transformer.parameter "block.0" layer 0 init <constant, 1.0> : tensor<4xf32, #transformer.dims<embed>>
    // expected-error@+1 {{is of layer 2, but no parameter is of layer 1; layers are numbered from 0 on}}
    %b = transformer.parameter "block.1" layer 2 init <constant, 1.0> : tensor<4xf32, #transformer.dims<embed>>
    %l = transformer.parameter "w" init <constant, 1.0> : tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

module {
  // expected-error@+1 {{argument 0 of @loss is 'tensor<4xi32>', expected an i32 tensor of dims <batch, sequence>}}
  func.func @loss(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
    %l = transformer.parameter "w" init <constant, 1.0> : tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A model has all its layers.
#bs = #transformer.dims<batch, sequence>
// expected-error@+1 {{has the attribute 'schedule.folded_layers', which passes set, not the model; leave it out}}
module attributes {schedule.folded_layers = array<i64: 2, 1, 2>} {
  func.func @loss(%tokens: tensor<?x?xi32, #bs>, %targets: tensor<?x?xi32, #bs>) -> tensor<f32> {
    %w = transformer.parameter "w" init <constant, 1.0> : tensor<f32>
    return %w : tensor<f32>
  }
}

// -----

// Nothing cuts a step into stages yet.
#bs = #transformer.dims<batch, sequence>
module {
  func.func @loss(%tokens: tensor<?x?xi32, #bs>, %targets: tensor<?x?xi32, #bs>) -> tensor<f32> {
    %w = transformer.parameter "w" init <constant, 1.0> : tensor<f32>
    // expected-error@+1 {{is of stage 1 of a pipeline, which the spec cuts, not the model; leave 'transformer.stage' out}}
    %l = transformer.add %w, %w {transformer.stage = 1 : i64} : tensor<f32>, tensor<f32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// Fusion would take the sum over it for one of parts.
#bs = #transformer.dims<batch, sequence>
module {
  func.func @loss(%tokens: tensor<?x?xi32, #bs>, %targets: tensor<?x?xi32, #bs>) -> tensor<f32> {
    // expected-error@+1 {{the dim name "chunk" is the compiler's own, so call it otherwise}}
    %w = transformer.parameter "w" init <constant, 1.0> : tensor<4xf32, #transformer.dims<chunk>>
    %l = transformer.reduce add %w over <chunk> : tensor<4xf32, #transformer.dims<chunk>> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

#bs = #transformer.dims<batch, sequence>
module {
  func.func @loss(%tokens: tensor<?x?xi32, #bs>, %targets: tensor<?x?xi32, #bs>) -> tensor<f32> {
    // expected-note@+1 {{which is of this one}}
    %a = transformer.parameter "w" init <constant, 1.0> files [#transformer.file<"a.{}.b" along 0>] : tensor<4x4xf32, #transformer.dims<experts, embed>>
    // expected-error@+1 {{(C6) its file "a.3.b" may have the name of another's, "a.{}.b"}}
    %b = transformer.parameter "a.3.b" init <constant, 1.0> : tensor<4xf32, #transformer.dims<embed>>
    %c = transformer.parameter "a.4.b" init <constant, 1.0> : tensor<f32>
    return %c : tensor<f32>
  }
}
