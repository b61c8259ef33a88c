// Model ops: what is printed reads back as the same, in every form there is.
// RUN: meshwork-opt %s | meshwork-opt | FileCheck %s
// RUN: meshwork-opt %s --mlir-print-op-generic | meshwork-opt | FileCheck %s
// RUN: meshwork-opt %s --emit-bytecode | meshwork-opt | FileCheck %s

#e = #transformer.dims<embed>
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
#bshd = #transformer.dims<batch, sequence, heads, head_dim>

// Dims print as aliases named after them.
// CHECK-DAG: #[[BSE:.*]] = #transformer.dims<batch, sequence, embed>
// CHECK-DAG: #[[VE:.*]] = #transformer.dims<vocab, embed>

// CHECK-LABEL: func.func @parameters
func.func @parameters() {
  // CHECK: transformer.parameter "wte" init <normal, 0.000000e+00, 2.000000e-02> : tensor<16x4xf32, #[[VE]]>
  %0 = transformer.parameter "wte" init <normal, 0.0, 0.02> : tensor<16x4xf32, #ve>
  // CHECK: transformer.parameter "norm" init <constant, 1.000000e+00> : tensor<4xf32
  %1 = transformer.parameter "norm" init <constant, 1.0> : tensor<4xf32, #e>
  // CHECK: transformer.parameter "in_block" layer 3 init <constant, 1.000000e+00> : tensor<4xf32
  %in_block = transformer.parameter "in_block" layer 3 init <constant, 1.0> : tensor<4xf32, #e>
  // CHECK: transformer.parameter "bias" layer 3 untrained init <constant, 0.000000e+00> : tensor<4xf32
  %bias = transformer.parameter "bias" layer 3 untrained init <constant, 0.0> : tensor<4xf32, #e>
  // CHECK: transformer.parameter "q" init <uniform, -1.000000e+00, 1.000000e+00> file_shape [64] : tensor<16x4xbf16
  %2 = transformer.parameter "q" init <uniform, -1.0, 1.0> file_shape [64] : tensor<16x4xbf16, #ve>
  // CHECK: transformer.parameter "counted" init <constant, 1.000000e+00> files [#transformer.file<"w.{}" along 0>] : tensor<16x4xf32
  %3 = transformer.parameter "counted" init <constant, 1.0> files [#transformer.file<"w.{}" along 0>] : tensor<16x4xf32, #ve>
  // CHECK: transformer.parameter "parts" init <constant, 1.000000e+00> files [#transformer.file<"a.{}.b" along 1 from 7 at [0, 0] size [8, 4] shape [2, 4]>, #transformer.file<"rest" at [8, 0] size [8, 4]>]
  // CHECK-SAME: or {{\[\[}}#transformer.file<"all" shape [20, 9] offset [4, 5]>]] : tensor<16x4xf32
  %4 = transformer.parameter "parts" init <constant, 1.0> files [#transformer.file<"a.{}.b" along 1 from 7 at [0, 0] size [8, 4] shape [2, 4]>, #transformer.file<"rest" at [8, 0] size [8, 4]>]
      or [[#transformer.file<"all" shape [20, 9] offset [4, 5]>]] : tensor<16x4xf32, #ve>
  return
}

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<?x?x4xf32, #bse>, %b: tensor<4xf32, #e>, %s: tensor<f32>) {
  // CHECK: transformer.add %{{.*}}, %{{.*}} : tensor<?x?x4xf32, #[[BSE]]>, tensor<4xf32, #{{.*}}> -> tensor<?x?x4xf32, #[[BSE]]>
  %0 = transformer.add %x, %b : tensor<?x?x4xf32, #bse>, tensor<4xf32, #e> -> tensor<?x?x4xf32, #bse>
  // CHECK: transformer.sub
  %1 = transformer.sub %x, %s : tensor<?x?x4xf32, #bse>, tensor<f32> -> tensor<?x?x4xf32, #bse>
  // CHECK: transformer.mul
  %2 = transformer.mul %b, %x : tensor<4xf32, #e>, tensor<?x?x4xf32, #bse> -> tensor<?x?x4xf32, #bse>
  // CHECK: transformer.activate{{ +}}gelu_tanh
  %3 = transformer.activate gelu_tanh %x : tensor<?x?x4xf32, #bse>
  // CHECK: transformer.activate{{ +}}gelu %
  %4 = transformer.activate gelu %x : tensor<?x?x4xf32, #bse>
  // CHECK: transformer.activate{{ +}}silu
  %5 = transformer.activate silu %x : tensor<?x?x4xf32, #bse>
  // CHECK: transformer.activate{{ +}}relu
  %6 = transformer.activate relu %x : tensor<?x?x4xf32, #bse>
  // CHECK: transformer.dropout %{{.*}} "h.0.drop" rate 1.000000e-01 : tensor<?x?x4xf32
  %7 = transformer.dropout %x "h.0.drop" rate 0.1 : tensor<?x?x4xf32, #bse>
  return
}

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<2x3x4xf32, #bse>, %w: tensor<4xf32, #e>, %q: tensor<2x3x2x4xbf16, #bshd>) {
  // CHECK: transformer.layer_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon 1.000000e-05 : tensor<2x3x4xf32, #[[BSE]]>, tensor<4xf32
  %0 = transformer.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<2x3x4xf32, #bse>, tensor<4xf32, #e>
  // CHECK: transformer.rms_norm %{{.*}}, %{{.*}} epsilon {{.*}} : tensor<2x3x4xf32
  %1 = transformer.rms_norm %x, %w epsilon 1.0e-6 : tensor<2x3x4xf32, #bse>, tensor<4xf32, #e>
  // CHECK: transformer.standardize %{{.*}} epsilon 1.000000e-05 : tensor<2x3x4xf32, #[[BSE]]>
  %s = transformer.standardize %x epsilon 1.0e-5 : tensor<2x3x4xf32, #bse>
  // CHECK: transformer.rope %{{.*}} inverse_frequencies [1.000000e+00] scale 2.000000e+00
  %r = transformer.rope %q inverse_frequencies [1.0] scale 2.0 : tensor<2x3x2x4xbf16, #bshd>
  // CHECK: transformer.rope %{{.*}} inverse_frequencies [1.000000e+00, 1.000000e-02] scale 2.000000e+00
  %2 = transformer.rope %q inverse_frequencies [1.0, 0.01] scale 2.0 : tensor<2x3x2x4xbf16, #bshd>
  return
}

// CHECK-LABEL: func.func @head
// CHECK-SAME: %[[COUNT:[a-z0-9]+]]: tensor<f32>
func.func @head(%h: tensor<2x3x4xf32, #bse>, %w: tensor<16x4xf32, #ve>, %t: tensor<2x3xi32, #bs> {transformer.input = "inner_targets"}, %count: tensor<f32>) -> tensor<f32> {
  // CHECK: transformer.head_loss %{{.*}}, %{{.*}}, %{{.*}} counted(%[[COUNT]] : tensor<f32>) scale 1.000000e+00 : tensor<2x3x4xf32
  %counted = transformer.head_loss %h, %w, %t counted(%count : tensor<f32>) scale 1.0 : tensor<2x3x4xf32, #bse>, tensor<16x4xf32, #ve>, tensor<2x3xi32, #bs> -> tensor<f32>
  // CHECK: transformer.head_loss %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 cap 3.000000e+01 : tensor<2x3x4xf32
  %capped = transformer.head_loss %h, %w, %t scale 1.0 cap 30.0 : tensor<2x3x4xf32, #bse>, tensor<16x4xf32, #ve>, tensor<2x3xi32, #bs> -> tensor<f32>
  // CHECK: transformer.head_loss %{{.*}}, %{{.*}}, %{{.*}} scale 2.500000e-01 : tensor<2x3x4xf32, #[[BSE]]>, tensor<16x4xf32, #[[VE]]>, tensor<2x3xi32, #{{.*}}> -> tensor<f32>
  %0 = transformer.head_loss %h, %w, %t scale 0.25 : tensor<2x3x4xf32, #bse>, tensor<16x4xf32, #ve>, tensor<2x3xi32, #bs> -> tensor<f32>
  // CHECK: transformer.auxiliary_loss "extra_2" coefficient -5.000000e-01, %{{.*}} : tensor<f32>
  transformer.auxiliary_loss "extra_2" coefficient -0.5, %0 : tensor<f32>
  return %0 : tensor<f32>
}
