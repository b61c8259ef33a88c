// RUN: meshwork-opt %s -transformer-decompose | FileCheck %s --check-prefix=MODEL
// RUN: meshwork-opt %s -transformer-decompose -transformer-autodiff | FileCheck %s
// Layer and stage of an op are those of what it is decomposed to, and of its
// gradient.
#s = #transformer.dims<sequence>
#e = #transformer.dims<embed>
#se = #transformer.dims<sequence, embed>
!x = tensor<4x8xf32, #se>
!e = tensor<8xf32, #e>

// MODEL-LABEL: func.func @loss
// Ops follow the parameters that they read.
// MODEL: transformer.map {{.*}} {transformer.layer = 0 : i64}
// What a model op becomes is of its layer: a norm, for one.
// MODEL: transformer.reduce {{.*}} {transformer.layer = 1 : i64, transformer.stage = 1 : i64}
// MODEL: transformer.map {{.*}} {transformer.layer = 1 : i64, transformer.stage = 1 : i64}
// The residual add has no parameter.
// MODEL: transformer.map {{.*}} {transformer.layer = 1 : i64}
// What reads a parameter of no layer behind the layers is behind them.
// MODEL: transformer.map ins
// MODEL-NOT: transformer.layer
// MODEL: transformer.yield

// CHECK-LABEL: func.func @microbatch
// CHECK: transformer.map {{.*}} {transformer.layer = 1 : i64, transformer.pass = #transformer.pass<backward>, transformer.stage = 1 : i64}
// CHECK: transformer.accumulate{{ +}}gradient "norm", {{.*}} {transformer.layer = 1 : i64, transformer.pass = #transformer.pass<backward>, transformer.stage = 1 : i64}
// CHECK: {transformer.layer = 0 : i64, transformer.pass = #transformer.pass<backward>}
func.func @loss(%tokens: tensor<4xi32, #s>, %targets: tensor<4xi32, #s>) -> tensor<f32> {
  %table = transformer.parameter "table" init <constant, 1.0> : !x
  %scale = transformer.parameter "scale" layer 0 init <constant, 1.0> : !e
  %norm = transformer.parameter "norm" layer 1 init <constant, 1.0> : !e
  %last = transformer.parameter "last" init <constant, 1.0> : !e
  %x = transformer.activate relu %table : !x
  %0 = transformer.mul %x, %scale : !x, !e -> !x
  %1 = transformer.rms_norm %0, %norm epsilon 1.0e-5 {transformer.stage = 1 : i64} : !x, !e
  %2 = transformer.add %0, %1 : !x, !x -> !x
  %3 = transformer.mul %2, %last : !x, !e -> !x
  %4 = transformer.reduce add %3 over <sequence, embed> : !x -> tensor<f32>
  return %4 : tensor<f32>
}
