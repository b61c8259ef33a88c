// RUN: meshwork-opt %s -pipeline-unfold-layers | FileCheck %s
// RUN: meshwork-opt %s -pipeline-unfold-layers="of=update" | FileCheck %s --check-prefix=UPDATE

// The forward pass goes up, the backward pass down. Each layer reads what is its
// own, and what its neighbours have made. Sums get the terms of all layers.
#e = #transformer.dims<embed>
!x = tensor<8xf32, #e>
// CHECK-NOT: folded_layers
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[X1:.*]] = transformer.map ins(%{{.*}}, %{{.*}}) {transformer.layer = 1 : i64}
// CHECK: %[[W2:.*]] = transformer.parameter "h.2.w" layer 2
// CHECK: %[[X2:.*]] = transformer.map ins(%[[X1]], %[[W2]] {{.*}}) {transformer.layer = 2 : i64}
// CHECK: %[[W3:.*]] = transformer.parameter "h.3.w" layer 3
// CHECK: %[[X3:.*]] = transformer.map ins(%[[X2]], %[[W3]] {{.*}}) {transformer.layer = 3 : i64}
// CHECK: %[[W4:.*]] = transformer.parameter "h.4.w" layer 4
// CHECK: %[[X4:.*]] = transformer.map ins(%[[X3]], %[[W4]] {{.*}}) {transformer.layer = 4 : i64}
// CHECK: %[[X5:.*]] = transformer.map ins(%[[X4]], {{.*}}layer = 5
// CHECK: %[[G5:.*]] = transformer.map ins(%[[X5]], %[[X5]] {{.*}}layer = 5
// CHECK: %[[G4:.*]] = transformer.map ins(%[[G5]], %[[X4]] {{.*}}layer = 4
// CHECK: accumulate gradient "h.4.w", %[[G4]] {transformer.layer = 4
// CHECK: %[[G3:.*]] = transformer.map ins(%[[G4]], %[[X3]] {{.*}}layer = 3
// CHECK: accumulate gradient "h.3.w", %[[G3]] {transformer.layer = 3
// CHECK: %[[G2:.*]] = transformer.map ins(%[[G3]], %[[X2]] {{.*}}layer = 2
// CHECK: accumulate gradient "h.2.w", %[[G2]] {transformer.layer = 2
// CHECK: transformer.map ins(%[[G2]], %[[X1]] {{.*}}layer = 1
// CHECK: transformer.map {{.*}}layer = 0

// CHECK-LABEL: func.func @update
// CHECK: %[[S1:.*]] = transformer.state gradient "h.1.w"
// CHECK: %[[S2:.*]] = transformer.state gradient "h.2.w"
// CHECK: %[[S3:.*]] = transformer.state gradient "h.3.w"
// CHECK: %[[S4:.*]] = transformer.state gradient "h.4.w"
// CHECK: %[[S5:.*]] = transformer.state gradient "h.5.w"
// CHECK: %[[R0:.*]] = transformer.reduce
// CHECK: %[[R1:.*]] = transformer.reduce add %[[S1]]
// CHECK: %[[R2:.*]] = transformer.reduce add %[[S2]]
// CHECK: %[[R3:.*]] = transformer.reduce add %[[S3]]
// CHECK: %[[R4:.*]] = transformer.reduce add %[[S4]]
// CHECK: %[[R5:.*]] = transformer.reduce add %[[S5]]
// CHECK: transformer.map ins(%[[R0]], %[[R1]], %[[R2]], %[[R3]], %[[R4]], %[[R5]] :
// CHECK: arith.addf
// CHECK-COUNT-5: arith.addf

// UPDATE: folded_layers = array<i64: 2, 1, 2>
// UPDATE-LABEL: func.func @microbatch
// UPDATE-NOT: "h.2.w"
// UPDATE-LABEL: func.func @update
// UPDATE: "h.2.w"
module attributes {schedule.folded_layers = array<i64: 2, 1, 2>} {
  func.func @microbatch(%x: !x) {
    %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
    %x0 = transformer.map ins(%x, %w0 : !x, !x) {transformer.layer = 0 : i64} -> !x {
    ^bb0(%a: f32, %b: f32):
      %c = arith.mulf %a, %b : f32
      transformer.yield %c : f32
    }
    %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
    %x1 = transformer.map ins(%x0, %w1 : !x, !x) {transformer.layer = 1 : i64} -> !x {
    ^bb0(%a: f32, %b: f32):
      %c = arith.mulf %a, %b : f32
      transformer.yield %c : f32
    }
    %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 1.0> : !x
    %x4 = transformer.map ins(%x1, %w4 : !x, !x) {transformer.layer = 4 : i64} -> !x {
    ^bb0(%a: f32, %b: f32):
      %c = arith.mulf %a, %b : f32
      transformer.yield %c : f32
    }
    %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
    %x5 = transformer.map ins(%x4, %w5 : !x, !x) {transformer.layer = 5 : i64} -> !x {
    ^bb0(%a: f32, %b: f32):
      %c = arith.mulf %a, %b : f32
      transformer.yield %c : f32
    }
    %g5 = transformer.map ins(%x5, %x5 : !x, !x) {transformer.layer = 5 : i64} -> !x {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      transformer.yield %c : f32
    }
    transformer.accumulate gradient "h.5.w", %g5 {transformer.layer = 5 : i64} : !x
    %g4 = transformer.map ins(%g5, %x4 : !x, !x) {transformer.layer = 4 : i64} -> !x {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      transformer.yield %c : f32
    }
    transformer.accumulate gradient "h.4.w", %g4 {transformer.layer = 4 : i64} : !x
    %g1 = transformer.map ins(%g4, %x1 : !x, !x) {transformer.layer = 1 : i64} -> !x {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      transformer.yield %c : f32
    }
    transformer.accumulate gradient "h.1.w", %g1 {transformer.layer = 1 : i64} : !x
    %g0 = transformer.map ins(%g1, %x0 : !x, !x) {transformer.layer = 0 : i64} -> !x {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      transformer.yield %c : f32
    }
    transformer.accumulate gradient "h.0.w", %g0 {transformer.layer = 0 : i64} : !x
    return
  }
  func.func @update() {
    %s0 = transformer.state gradient "h.0.w" : !x
    %s1 = transformer.state gradient "h.1.w" : !x
    %s4 = transformer.state gradient "h.4.w" : !x
    %s5 = transformer.state gradient "h.5.w" : !x
    %r0 = transformer.reduce add %s0 over #e : !x -> tensor<f32>
    %r1 = transformer.reduce add %s1 over #e : !x -> tensor<f32>
    %r4 = transformer.reduce add %s4 over #e : !x -> tensor<f32>
    %r5 = transformer.reduce add %s5 over #e : !x -> tensor<f32>
    %sum = transformer.map ins(%r0, %r1, %r4, %r5 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32> {
    ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
      %zero = arith.constant 0.0 : f32
      %e = arith.addf %zero, %a : f32
      %f = arith.addf %e, %b : f32
      %g = arith.addf %f, %c : f32
      %h = arith.addf %g, %d : f32
      transformer.yield %h : f32
    }
    transformer.assign grad_norm "", %sum : tensor<f32>
    return
  }
}
