// All errors of one run, not the first alone.
// RUN: not meshwork-opt %s -mlir-print-op-on-diagnostic=false -sharding-annotate='axes=dp=2,tp=3 rules=batch=data,ffn=tp/tp,heads=tp,kv_heads=tp pins={none* [{}]},{a [{"tp"}, {"tp"}]},{b [{"x"}, {"y"}]},{c [{}]},{d [{}, {}], partial = sum {"dp"}},{e* [{}, {}]},{e [{?}, {}]},{f2 [{?}, {}], replicated = {"z"}}' 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: not meshwork-opt %s -mlir-print-op-on-diagnostic=false -sharding-annotate='axes=dp' 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not meshwork-opt %s -mlir-print-op-on-diagnostic=false -sharding-annotate='axes=dp=0' 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not meshwork-opt %s -mlir-print-op-on-diagnostic=false -sharding-annotate='axes=dp=2,dp=4' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not meshwork-opt %s -mlir-print-op-on-diagnostic=false -sharding-annotate='axes=dp=2 pins="a[ [{}]"' 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not meshwork-opt %s -mlir-print-op-on-diagnostic=false -sharding-annotate='axes=cp=2 rules=sequence=cp method=rings' 2>&1 | FileCheck %s --check-prefix=METHOD
// RUN: not meshwork-opt %s -mlir-print-op-on-diagnostic=false -sharding-annotate='axes=tp=2 rules=residual_sequence=tp' 2>&1 | FileCheck %s --check-prefix=RESIDUAL
// RUN: echo 'module {}' | not meshwork-opt -sharding-annotate='axes=dp=2' 2>&1 | FileCheck %s --check-prefix=EMPTY

// AXIS: axes option: found 'dp', expected a name and a number from 1 on
// SIZE: axes option: found 'dp=0', expected a name and a number from 1 on
// TWICE: error: axis "dp" occurs twice
// METHOD: error: found "rings", expected "gathered", "ulysses" or "ring"
// RESIDUAL: error: splits the residual stream, but the model has no head_loss, which would tell its dim; leave the rule out
// GLOB: error: 'a[' is no glob: invalid glob pattern, unmatched '['
// EMPTY: error: expected a function @microbatch; run -transformer-autodiff first

// ALL: error: rule 'batch=data' names axis 'data', which the mesh does not have
// ALL: error: rule 'ffn=tp/tp' names axis 'tp' twice
#fe = #transformer.dims<ffn, embed>
#hde = #transformer.dims<heads, head_dim, embed>
#kde = #transformer.dims<kv_heads, head_dim, embed>
#bshd = #transformer.dims<batch, sequence, heads, head_dim>
#bskd = #transformer.dims<batch, sequence, kv_heads, head_dim>
#bhs = #transformer.dims<batch, heads, sequence>
func.func @microbatch() {
  %x = transformer.parameter "attended" init <constant, 1.0> : tensor<2x4x2x2xf32, #bshd>
  %keys = transformer.parameter "keys" init <constant, 1.0> : tensor<2x4x1x2xf32, #bskd>
  %attention, %lse = transformer.attention %x, %keys, %keys causal scale 0.5 : tensor<2x4x2x2xf32, #bshd>, tensor<2x4x1x2xf32, #bskd>, tensor<2x4x1x2xf32, #bskd> -> tensor<2x4x2x2xf32, #bshd>, tensor<2x2x4xf32, #bhs>
  // The op, the dim, the axis, both sizes, and sizes that would do.
  // ALL: [[#@LINE+1]]:{{.*}} error: parameter 'k': dim 'kv_heads' of size 2 cannot be split over axis 'tp' of size 3; an axis of 2 ranks would divide it{{$}}
  %k = transformer.parameter "k" init <constant, 1.0> : tensor<2x2x8xf32, #kde>
  // ALL: [[#@LINE+1]]:{{.*}} error: parameter 'q': dim 'heads' of size 8 cannot be split over axis 'tp' of size 3; an axis of 2 or 4 ranks would divide it
  %q = transformer.parameter "q" init <constant, 1.0> : tensor<8x2x8xf32, #hde>
  // ALL: [[#@LINE+1]]:{{.*}} error: pin 'a' of parameter 'a': '[{"tp"}, {"tp"}]': axis "tp" is used twice
  %a = transformer.parameter "a" init <constant, 1.0> : tensor<12x8xf32, #fe>
  // ALL: [[#@LINE+2]]:{{.*}} error: pin 'b' of parameter 'b': names axis "x", expected one of #mesh.mesh<"dp"=2, "tp"=3>
  // ALL: [[#@LINE+1]]:{{.*}} error: pin 'b' of parameter 'b': names axis "y"
  %b = transformer.parameter "b" init <constant, 1.0> : tensor<12x8xf32, #fe>
  // ALL: [[#@LINE+1]]:{{.*}} error: pin 'c' of parameter 'c': has 1 dim, expected 2 for 'tensor<12x8xf32
  %c = transformer.parameter "c" init <constant, 1.0> : tensor<12x8xf32, #fe>
  // ALL: [[#@LINE+1]]:{{.*}} error: pin 'd' of parameter 'd': makes a parameter partial
  %d = transformer.parameter "d" init <constant, 1.0> : tensor<12x8xf32, #fe>
  // ALL: [[#@LINE+1]]:{{.*}} error: pin 'f2' of parameter 'f2': names axis "z", expected one of
  %f = transformer.parameter "f2" init <constant, 1.0> : tensor<12x8xf32, #fe>
  // Contradictory pins: the first one holds, so the second would be ignored.
  %e = transformer.parameter "e" init <constant, 1.0> : tensor<12x8xf32, #fe>
  return
}
// ALL: error: no parameter is named 'none*'
// ALL: error: pin 'e' has no effect: all its parameters are pinned by 'e*' before it; the first pin of a parameter holds, so leave one out or move this one up
