// RUN: meshwork-opt %s -split-input-file -partition-split-batch="axes=dp" -verify-diagnostics

#b = #transformer.dims<batch, embed>
#e = #transformer.dims<embed>

module attributes {mesh.axes = {dp = 2 : i64}} {
  func.func @microbatch(%x: tensor<8x8xf32, #b>) {
    // expected-note@+1 {{summed here}}
    %s = transformer.reduce add %x over <batch> : tensor<8x8xf32, #b> -> tensor<8xf32, #e>
    // expected-error@+1 {{needs a value that is partial}}
    %y = transformer.map ins(%s : tensor<8xf32, #e>) -> tensor<8xf32, #e> {
    ^bb0(%a: f32):
      %z = math.exp %a : f32
      transformer.yield %z : f32
    }
    transformer.accumulate gradient "w", %y : tensor<8xf32, #e>
    return
  }
  func.func @update() {
    return
  }
}

// -----

// expected-error@+1 {{axis 'dp' is not in mesh.axes}}
module {
}

// -----

module attributes {mesh.axes = {dp = 3 : i64}} {
  // expected-error@+1 {{dim `batch` of size 8 is not divisible by 3 parts; try 9}}
  func.func @microbatch(%x: tensor<8x8xf32, #transformer.dims<batch, embed>>) {
    return
  }
  func.func @update() {
    return
  }
}
