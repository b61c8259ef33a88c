// RUN: meshwork-opt %s -split-input-file -verify-diagnostics -pipeline-unfold-layers

// expected-error @+1 {{'schedule.folded_layers' is array<i64: 2, 0, 2>, expected the first layer left out, the length of a period, and how many periods}}
module attributes {schedule.folded_layers = array<i64: 2, 0, 2>} {
}

// -----

// What stands behind is something else.
!x = tensor<8xf32, #transformer.dims<embed>>
module attributes {schedule.folded_layers = array<i64: 2, 1, 2>} {
  func.func @microbatch(%x: !x) -> !x {
    %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
    %x0 = transformer.add %x, %w0 : !x, !x -> !x
    // expected-error @+1 {{is not the same in all layers}}
    %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
    %x1 = transformer.add %x0, %w1 : !x, !x -> !x
    %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 2.0> : !x
    %x4 = transformer.add %x1, %w4 : !x, !x -> !x
    %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
    %x5 = transformer.add %x4, %w5 : !x, !x -> !x
    return %x5 : !x
  }
}

// -----

// Something reads all layers and is no sum.
!x = tensor<8xf32, #transformer.dims<embed>>
module attributes {schedule.folded_layers = array<i64: 2, 1, 2>} {
  func.func @microbatch(%x: !x) -> (!x, !x) {
    %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
    %x0 = transformer.add %x, %w0 : !x, !x -> !x
    %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
    %x1 = transformer.add %x0, %w1 : !x, !x -> !x
    %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 1.0> : !x
    %x4 = transformer.add %x1, %w4 : !x, !x -> !x
    %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
    %x5 = transformer.add %x4, %w5 : !x, !x -> !x
    // expected-error @+1 {{is not the same in all layers}}
    %y = transformer.map ins(%x0, %x1, %x5 : !x, !x, !x) -> !x {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %d = arith.addf %a, %b : f32
      %e = arith.mulf %c, %d : f32
      transformer.yield %e : f32
    }
    return %x5, %y : !x, !x
  }
}

// -----

// A layer before reads one of its own of those that stand for others, which they
// do not read of each other.
!x = tensor<8xf32, #transformer.dims<embed>>
module attributes {schedule.folded_layers = array<i64: 2, 1, 2>} {
  func.func @microbatch(%x: !x) -> (!x, !x) {
    %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
    %x0 = transformer.add %x, %w0 : !x, !x -> !x
    // expected-error @+1 {{is not the same in all layers}}
    %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
    %x1 = transformer.add %x0, %w1 : !x, !x -> !x
    %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 1.0> : !x
    %x4 = transformer.add %x1, %w4 : !x, !x -> !x
    %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
    %x5 = transformer.add %x4, %w5 : !x, !x -> !x
    %y = transformer.add %x0, %x1 {transformer.layer = 0 : i64} : !x, !x -> !x
    return %x5, %y : !x, !x
  }
}
