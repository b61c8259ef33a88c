// RUN: meshwork-opt %s -split-input-file -transformer-decompose | FileCheck %s

#se = #transformer.dims<sequence, embed>
#e = #transformer.dims<embed>

// A norm is a sum of squares and one map.
// CHECK-LABEL: func.func @rms_norm
func.func @rms_norm(%x: tensor<4x8xf32, #se>, %w: tensor<8xf32, #e>) -> tensor<4x8xf32, #se> {
  // CHECK: %[[SQUARES:.*]] = transformer.map
  // CHECK: arith.mulf
  // CHECK: %[[SUM:.*]] = transformer.reduce{{ +}}add %[[SQUARES]] over #{{.*}} -> tensor<4xf32
  // CHECK: transformer.map ins(%{{.*}}, %[[SUM]], %{{.*}}
  // CHECK: math.rsqrt
  // CHECK-NOT: transformer.rms_norm
  %y = transformer.rms_norm %x, %w epsilon 1.0e-6 : tensor<4x8xf32, #se>, tensor<8xf32, #e>
  return %y : tensor<4x8xf32, #se>
}

// -----

#q = #transformer.dims<batch, sequence, heads, head_dim>

// Rotary embedding reads tables, and its input twice.
// CHECK-LABEL: func.func @rope
func.func @rope(%x: tensor<1x8x2x4xf32, #q>) -> tensor<1x8x2x4xf32, #q> {
  // CHECK: %[[COS:.*]], %[[SIN:.*]] = transformer.rotary_table
  // CHECK: %[[ROLLED:.*]] = transformer.roll %[[X:.*]] by 2
  // CHECK: transformer.map ins(%[[X]], %[[ROLLED]], %[[COS]], %[[SIN]]
  %y = transformer.rope %x inverse_frequencies [1.0, 0.01] scale 1.0 : tensor<1x8x2x4xf32, #q>
  return %y : tensor<1x8x2x4xf32, #q>
}

// -----

#q = #transformer.dims<batch, sequence, heads, head_dim>

// The first elements turn, as many as twice the frequencies; the others stay.
// CHECK-LABEL: func.func @rope_of_a_part
func.func @rope_of_a_part(%x: tensor<1x8x2x6xf32, #q>) -> tensor<1x8x2x6xf32, #q> {
  // CHECK: %[[FIRST:.*]] = transformer.slice %[[X:.*]] dim "head_dim" offset 0 {{.*}} -> tensor<1x8x2x4xf32
  // CHECK: transformer.roll %[[FIRST]] by 2
  // CHECK: %[[TURNED:.*]] = transformer.map
  // CHECK: %[[KEPT:.*]] = transformer.slice %[[X]] dim "head_dim" offset 4 {{.*}} -> tensor<1x8x2x2xf32
  // CHECK: transformer.unslice %[[TURNED]], %[[KEPT]] dim "head_dim" offsets [0, 4]
  %y = transformer.rope %x inverse_frequencies [1.0, 0.01] scale 1.0 : tensor<1x8x2x6xf32, #q>
  return %y : tensor<1x8x2x6xf32, #q>
}

// -----

#se = #transformer.dims<sequence, embed>

// LayerNorm without weight and bias: two sums, and maps.
// CHECK-LABEL: func.func @standardize
func.func @standardize(%x: tensor<4x8xf32, #se>) -> tensor<4x8xf32, #se> {
  // CHECK: transformer.reduce{{ +}}add
  // CHECK: %[[SUM:.*]] = transformer.reduce{{ +}}add {{.*}} -> tensor<4xf32
  // CHECK: transformer.map ins(%{{.*}}, %[[SUM]] :
  // CHECK: math.rsqrt
  // CHECK-NOT: transformer.standardize
  %y = transformer.standardize %x epsilon 1.0e-5 : tensor<4x8xf32, #se>
  return %y : tensor<4x8xf32, #se>
}

// -----

#bse = #transformer.dims<batch, sequence, embed>

// Dropout at rate zero is nothing; else a mask from the step's counters.
// CHECK-LABEL: func.func @dropout
func.func @dropout(%x: tensor<1x8x4xf32, #bse>) -> tensor<1x8x4xf32, #bse> {
  // CHECK-NEXT: transformer.step_input{{ +}}seed
  // CHECK-NEXT: transformer.step_input{{ +}}step
  // CHECK-NEXT: transformer.step_input{{ +}}first_sample
  // CHECK-NEXT: transformer.map
  // CHECK: transformer.dropout_mask {{.*}} rate 1.000000e-01
  // CHECK-NOT: transformer.map
  // CHECK: return
  %y = transformer.dropout %x "a" rate 0.1 : tensor<1x8x4xf32, #bse>
  %z = transformer.dropout %y "b" rate 0.0 : tensor<1x8x4xf32, #bse>
  return %z : tensor<1x8x4xf32, #bse>
}

// -----

#s = #transformer.dims<sequence>

// Elementwise ops are maps, each with its formula.
// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<8xf32, #s>) -> tensor<8xf32, #s> {
  // CHECK: math.tanh
  %a = transformer.activate gelu_tanh %x : tensor<8xf32, #s>
  // CHECK: math.exp
  %b = transformer.activate silu %a : tensor<8xf32, #s>
  // CHECK: math.erf
  %c = transformer.activate gelu %b : tensor<8xf32, #s>
  // CHECK: arith.select
  %d = transformer.activate relu %c : tensor<8xf32, #s>
  // CHECK: arith.subf
  %e = transformer.sub %d, %x : tensor<8xf32, #s>, tensor<8xf32, #s> -> tensor<8xf32, #s>
  return %e : tensor<8xf32, #s>
}
