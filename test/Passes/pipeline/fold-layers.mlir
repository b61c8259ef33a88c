// RUN: meshwork-opt %s -split-input-file -pipeline-fold-layers | FileCheck %s

// Layers 1 to 7 are equal; layer 0 reads %x, and what behind the last one has no
// parameter belongs to it. Of 1 to 6 two are left at each end.
!x = tensor<8xf32, #transformer.dims<embed>>
// CHECK: module attributes {schedule.folded_layers = array<i64: 3, 1, 2>}
// CHECK-LABEL: func.func @loss
// CHECK: "h.2.w" layer 2
// CHECK-NEXT: %[[X2:.*]] = transformer.add
// CHECK-NEXT: %[[W5:.*]] = transformer.parameter "h.5.w" layer 5
// CHECK-NEXT: %[[X5:.*]] = transformer.add %[[X2]], %[[W5]]
// CHECK-NEXT: "h.6.w" layer 6
// CHECK-NEXT: transformer.add %[[X5]],
// CHECK-NEXT: "h.7.w" layer 7
// CHECK-NOT: parameter
func.func @loss(%x: !x) -> !x {
  %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
  %x0 = transformer.add %x, %w0 : !x, !x -> !x
  %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
  %x1 = transformer.add %x0, %w1 : !x, !x -> !x
  %w2 = transformer.parameter "h.2.w" layer 2 init <constant, 1.0> : !x
  %x2 = transformer.add %x1, %w2 : !x, !x -> !x
  %w3 = transformer.parameter "h.3.w" layer 3 init <constant, 1.0> : !x
  %x3 = transformer.add %x2, %w3 : !x, !x -> !x
  %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 1.0> : !x
  %x4 = transformer.add %x3, %w4 : !x, !x -> !x
  %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
  %x5 = transformer.add %x4, %w5 : !x, !x -> !x
  %w6 = transformer.parameter "h.6.w" layer 6 init <constant, 1.0> : !x
  %x6 = transformer.add %x5, %w6 : !x, !x -> !x
  %w7 = transformer.parameter "h.7.w" layer 7 init <constant, 1.0> : !x
  %x7 = transformer.add %x6, %w7 : !x, !x -> !x
  %y = transformer.activate silu %x7 : !x
  return %y : !x
}

// -----

// An initial value, the rest of a name, and what something else reads tell
// layers apart.
!x = tensor<8xf32, #transformer.dims<embed>>
// CHECK-LABEL: @initial
// CHECK-NOT: folded_layers
module @initial {
  func.func @loss(%x: !x) -> !x {
    %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
    %x0 = transformer.add %x, %w0 : !x, !x -> !x
    %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
    %x1 = transformer.add %x0, %w1 : !x, !x -> !x
    %w2 = transformer.parameter "h.2.w" layer 2 init <constant, 1.0> : !x
    %x2 = transformer.add %x1, %w2 : !x, !x -> !x
    %w3 = transformer.parameter "h.3.w" layer 3 init <constant, 2.0> : !x
    %x3 = transformer.add %x2, %w3 : !x, !x -> !x
    %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 1.0> : !x
    %x4 = transformer.add %x3, %w4 : !x, !x -> !x
    %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
    %x5 = transformer.add %x4, %w5 : !x, !x -> !x
    return %x5 : !x
  }
}

// -----

!x = tensor<8xf32, #transformer.dims<embed>>
// CHECK-LABEL: @leaf
// CHECK-NOT: folded_layers
module @leaf {
  func.func @loss(%x: !x) -> !x {
    %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
    %x0 = transformer.add %x, %w0 : !x, !x -> !x
    %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
    %x1 = transformer.add %x0, %w1 : !x, !x -> !x
    %w2 = transformer.parameter "h.2.w" layer 2 init <constant, 1.0> : !x
    %x2 = transformer.add %x1, %w2 : !x, !x -> !x
    %w3 = transformer.parameter "h.3.v" layer 3 init <constant, 1.0> : !x
    %x3 = transformer.add %x2, %w3 : !x, !x -> !x
    %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 1.0> : !x
    %x4 = transformer.add %x3, %w4 : !x, !x -> !x
    %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
    %x5 = transformer.add %x4, %w5 : !x, !x -> !x
    return %x5 : !x
  }
}

// -----

!x = tensor<8xf32, #transformer.dims<embed>>
// CHECK-LABEL: @read
// CHECK-NOT: folded_layers
module @read {
  func.func @loss(%x: !x) -> !x {
    %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
    %x0 = transformer.add %x, %w0 : !x, !x -> !x
    %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
    %x1 = transformer.add %x0, %w1 : !x, !x -> !x
    %w2 = transformer.parameter "h.2.w" layer 2 init <constant, 1.0> : !x
    %x2 = transformer.add %x1, %w2 : !x, !x -> !x
    %w3 = transformer.parameter "h.3.w" layer 3 init <constant, 1.0> : !x
    %x3 = transformer.add %x2, %w3 : !x, !x -> !x
    %s = transformer.add %x0, %x1 : !x, !x -> !x
    %t = transformer.add %x2, %x3 : !x, !x -> !x
    %u = transformer.add %s, %t : !x, !x -> !x
    %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 1.0> : !x
    %x4 = transformer.add %x3, %w4 : !x, !x -> !x
    %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
    %x5 = transformer.add %x4, %w5 : !x, !x -> !x
    %v = transformer.add %x5, %u : !x, !x -> !x
    return %v : !x
  }
}

// -----

// Layers of two kinds in turn.
!x = tensor<8xf32, #transformer.dims<embed>>
// CHECK: module @turns attributes {schedule.folded_layers = array<i64: 5, 2, 1>}
// CHECK: "h.4.w" layer 4
// CHECK: "h.7.w" layer 7
// CHECK-NOT: "h.5.w"
module @turns {
  func.func @loss(%x: !x) -> !x {
    %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
    %x0 = transformer.add %x, %w0 : !x, !x -> !x
    %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
    %x1 = transformer.mul %x0, %w1 : !x, !x -> !x
    %w2 = transformer.parameter "h.2.w" layer 2 init <constant, 1.0> : !x
    %x2 = transformer.add %x1, %w2 : !x, !x -> !x
    %w3 = transformer.parameter "h.3.w" layer 3 init <constant, 1.0> : !x
    %x3 = transformer.mul %x2, %w3 : !x, !x -> !x
    %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 1.0> : !x
    %x4 = transformer.add %x3, %w4 : !x, !x -> !x
    %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
    %x5 = transformer.mul %x4, %w5 : !x, !x -> !x
    %w6 = transformer.parameter "h.6.w" layer 6 init <constant, 1.0> : !x
    %x6 = transformer.add %x5, %w6 : !x, !x -> !x
    %w7 = transformer.parameter "h.7.w" layer 7 init <constant, 1.0> : !x
    %x7 = transformer.mul %x6, %w7 : !x, !x -> !x
    %w8 = transformer.parameter "h.8.w" layer 8 init <constant, 1.0> : !x
    %x8 = transformer.add %x7, %w8 : !x, !x -> !x
    %w9 = transformer.parameter "h.9.w" layer 9 init <constant, 1.0> : !x
    %x9 = transformer.mul %x8, %w9 : !x, !x -> !x
    %w10 = transformer.parameter "h.10.w" layer 10 init <constant, 1.0> : !x
    %x10 = transformer.add %x9, %w10 : !x, !x -> !x
    return %x10 : !x
  }
}
