// RUN: meshwork-opt %s -split-input-file -schedule-lower -verify-diagnostics

// expected-error@+1 {{expected functions @microbatch of tokens, targets and what else the launcher gives, and @update}}
module {
}

// -----

// What is of the step begins before any microbatch.
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
!x = tensor<1x4x8xf32, #bse>
module {
  func.func @microbatch(%tokens: tensor<1x4xi32, #bs>, %targets: tensor<1x4xi32, #bs>) {
    %t = transformer.parameter "t" init <constant, 1.0> : tensor<16x8xf32, #ve>
    // expected-note@+1 {{made here}}
    %x = transformer.embedding %t, %tokens : tensor<16x8xf32, #ve>, tensor<1x4xi32, #bs> -> !x
    // expected-error@+1 {{is of the step (transformer.of_step) but reads what each microbatch makes; expected parameters and what the step makes of them}}
    %a = transformer.fused rows #bs cols <embed> ins(%x : !x) {transformer.of_step} -> !x {
    ^bb0(%i: !x):
      %o = transformer.map ins(%i : !x) -> !x {
      ^bb0(%e: f32):
        %s = arith.addf %e, %e : f32
        transformer.yield %s : f32
      }
      transformer.yield %o : !x
    }
    return
  }
  func.func @update() {
    return
  }
}
