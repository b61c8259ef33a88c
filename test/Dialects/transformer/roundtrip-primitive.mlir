// Primitive and step ops: what is printed reads back as the same.
// RUN: meshwork-opt %s | meshwork-opt | FileCheck %s
// RUN: meshwork-opt %s --mlir-print-op-generic | meshwork-opt | FileCheck %s
// RUN: meshwork-opt %s --emit-bytecode | meshwork-opt | FileCheck %s

#e = #transformer.dims<embed>
#c = #transformer.dims<chunk>
#s = #transformer.dims<sequence>
#se = #transformer.dims<sequence, embed>
#sv = #transformer.dims<sequence, vocab>
#ve = #transformer.dims<vocab, embed>
#ce = #transformer.dims<chunk, embed>
#sd = #transformer.dims<sequence, head_dim>
#q = #transformer.dims<batch, sequence, heads, head_dim>
#kv = #transformer.dims<batch, sequence, kv_heads, head_dim>
#lse = #transformer.dims<batch, heads, sequence>
!q = tensor<1x8x4x2xf32, #q>
!kv = tensor<1x8x2x2xf32, #kv>
!lse = tensor<1x4x8xf32, #lse>
!half = tensor<1x4x4x2xf32, #q>
!half_lse = tensor<1x4x4xf32, #lse>
!rows = tensor<4xi32, #transformer.dims<sequence>>

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<4x8xf32, #se>, %id: tensor<4xi32, #s>, %n: tensor<i32>) {
  // CHECK: transformer.map ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xf32, #{{.*}}>, tensor<4xi32, #{{.*}}>, tensor<i32>) -> tensor<4x8xf32, #{{.*}}>, tensor<4x8xbf16, #{{.*}}> {
  // CHECK-NEXT: ^bb0(%[[E:.*]]: f32, %[[I:.*]]: i32, %[[N:.*]]: i32):
  %0:2 = transformer.map ins(%x, %id, %n : tensor<4x8xf32, #se>, tensor<4xi32, #s>, tensor<i32>)
      -> tensor<4x8xf32, #se>, tensor<4x8xbf16, #se> {
  ^bb0(%e: f32, %i: i32, %c: i32):
    // CHECK: transformer.dropout_mask %[[N]], %[[N]], %[[I]] stream 7 rate 1.000000e-01
    %m = transformer.dropout_mask %c, %c, %i stream 7 rate 0.1
    // CHECK: transformer.stochastic_round %[[E]] by %[[N]], %[[I]], %[[N]] stream 7
    // CHECK-NOT: of
    %r = transformer.stochastic_round %e by %c, %i, %c stream 7
    // CHECK: transformer.stochastic_round %[[E]] by %[[N]], %[[N]], %[[N]] stream -1 of [4, 16] at ["embed"] %[[I]]
    %p = transformer.stochastic_round %e by %c, %c, %c stream -1 of [4, 16] at ["embed"] %i
    // CHECK: transformer.index "embed" : i32
    %at = transformer.index "embed" : i32
    %f = arith.sitofp %at : i32 to f32
    %y = arith.mulf %m, %f : f32
    // CHECK: transformer.yield %{{.*}}, %[[E]] : f32, f32
    transformer.yield %y, %e : f32, f32
  }
  // An operand may stay away.
  // CHECK: transformer.map -> tensor<f32>
  %1 = transformer.map -> tensor<f32> {
    %one = arith.constant 1.0 : f32
    transformer.yield %one : f32
  }
  // CHECK: transformer.reduce{{ +}}add %{{.*}} over {{.*}} : tensor<4x8xf32, #{{.*}}> -> tensor<4xf32
  %2 = transformer.reduce add %x over <embed> : tensor<4x8xf32, #se> -> tensor<4xf32, #s>
  // CHECK: transformer.reduce{{ +}}max %{{.*}} over {{.*}} : tensor<4x8xf32, #{{.*}}> -> tensor<f32>
  %3 = transformer.reduce max %x over <sequence, embed> : tensor<4x8xf32, #se> -> tensor<f32>
  // CHECK: transformer.roll %{{.*}} by 2 : tensor<4x8xf32
  %4 = transformer.roll %x by 2 : tensor<4x8xf32, #se>
  return
}

// CHECK-LABEL: func.func @movement
func.func @movement(%t: tensor<8x4xf32, #ve>, %ids: tensor<3xi32, #s>, %v: tensor<8xf32, #transformer.dims<vocab>>) {
  // CHECK: transformer.slice %{{.*}} dim "vocab" offset 1 : tensor<8x4xf32, #{{.*}}> -> tensor<4xf32
  %0 = transformer.slice %t dim "vocab" offset 1 : tensor<8x4xf32, #ve> -> tensor<4xf32, #e>
  // CHECK: transformer.slice %{{.*}} dim "vocab" offset 2 : tensor<8x4xf32, #{{.*}}> -> tensor<3x4xf32
  %1 = transformer.slice %t dim "vocab" offset 2 : tensor<8x4xf32, #ve> -> tensor<3x4xf32, #se>
  // CHECK: transformer.unslice %{{.*}}, %{{.*}} dim "vocab" offsets [1, 2]
  %2 = transformer.unslice %0, %1 dim "vocab" offsets [1, 2] : tensor<4xf32, #e>, tensor<3x4xf32, #se> -> tensor<8x4xf32, #ve>
  // CHECK: %[[SPLIT:.*]] = transformer.split %{{.*}} dim "vocab" : tensor<8x4xf32, #{{.*}}> -> tensor<2x4x4xf32
  %b = transformer.split %t dim "vocab" : tensor<8x4xf32, #ve> -> tensor<2x4x4xf32, #transformer.dims<blocks, vocab, embed>>
  // CHECK: transformer.merge %[[SPLIT]] dim "vocab" : tensor<2x4x4xf32, #{{.*}}> -> tensor<8x4xf32
  %m = transformer.merge %b dim "vocab" : tensor<2x4x4xf32, #transformer.dims<blocks, vocab, embed>> -> tensor<8x4xf32, #ve>
  // CHECK: transformer.merge %[[SPLIT]] dim "vocab" gradient "w" :
  %w = transformer.merge %b dim "vocab" gradient "w" : tensor<2x4x4xf32, #transformer.dims<blocks, vocab, embed>> -> tensor<8x4xf32, #ve>
  // CHECK: transformer.embedding %{{.*}}, %{{.*}} : tensor<8x4xf32, #{{.*}}>, tensor<3xi32, #{{.*}}> -> tensor<3x4xf32
  %3 = transformer.embedding %t, %ids : tensor<8x4xf32, #ve>, tensor<3xi32, #s> -> tensor<3x4xf32, #se>
  // CHECK: transformer.embedding %{{.*}}, %{{.*}} padding 7 :
  %p = transformer.embedding %t, %ids padding 7 : tensor<8x4xf32, #ve>, tensor<3xi32, #s> -> tensor<3x4xf32, #se>
  // CHECK: transformer.top_k %{{.*}} : tensor<8x4xf32, #{{.*}}> -> tensor<8x2xi32
  %c = transformer.top_k %t : tensor<8x4xf32, #ve> -> tensor<8x2xi32, #transformer.dims<vocab, choices>>
  // CHECK: transformer.top_k %{{.*}} valid %{{.*}} : tensor<8xf32, #{{.*}}> groups 2 kept 1 by{{ +}}two_best :
  %g = transformer.top_k %t valid %v : tensor<8xf32, #transformer.dims<vocab>> groups 2 kept 1 by two_best : tensor<8x4xf32, #ve> -> tensor<8x2xi32, #transformer.dims<vocab, choices>>
  // CHECK: transformer.embedding_grad
  %4 = transformer.embedding_grad %ids, %3 : tensor<3xi32, #s>, tensor<3x4xf32, #se> -> tensor<8x4xf32, #ve>
  return
}

// CHECK-LABEL: func.func @products
func.func @products(%x: tensor<3x4xf32, #se>, %w: tensor<8x4xf32, #ve>, %b: tensor<8xf32, #transformer.dims<vocab>>, %t: tensor<3xi32, #s>) {
  // CHECK: transformer.contract "se,ve->sv" %{{.*}}, %{{.*}} : tensor<3x4xf32
  %0 = transformer.contract "se,ve->sv" %x, %w : tensor<3x4xf32, #se>, tensor<8x4xf32, #ve> -> tensor<3x8xf32, #sv>
  // CHECK: transformer.contract "se,ve->sv" %{{.*}}, %{{.*}} bias %{{.*}} : tensor<8xf32
  %1 = transformer.contract "se,ve->sv" %x, %w bias %b : tensor<8xf32, #transformer.dims<vocab>> : tensor<3x4xf32, #se>, tensor<8x4xf32, #ve> -> tensor<3x8xf32, #sv>
  // Operands of 8 bits come out of a map and have scales.
  // CHECK: %[[QX:.*]] = transformer.map {{.*}} -> tensor<3x4xf8E4M3FN
  %qx = transformer.map ins(%x : tensor<3x4xf32, #se>) -> tensor<3x4xf8E4M3FN, #se> {
  ^bb0(%p: f32):
    transformer.yield %p : f32
  }
  %qw = transformer.map ins(%w : tensor<8x4xf32, #ve>) -> tensor<8x4xf8E5M2, #ve> {
  ^bb0(%p: f32):
    transformer.yield %p : f32
  }
  %one = transformer.map -> tensor<f32> {
    %p = arith.constant 1.0 : f32
    transformer.yield %p : f32
  }
  // CHECK: transformer.contract "se,ve->sv" %[[QX]], %{{.*}} scaled %[[ONE:.*]], %[[ONE]] : tensor<f32>, tensor<f32> bias %{{.*}} : tensor<8xf32, #{{.*}}> : tensor<3x4xf8E4M3FN, #{{.*}}>, tensor<8x4xf8E5M2, #{{.*}}> -> tensor<3x8xf32
  %q = transformer.contract "se,ve->sv" %qx, %qw scaled %one, %one : tensor<f32>, tensor<f32> bias %b : tensor<8xf32, #transformer.dims<vocab>>
      : tensor<3x4xf8E4M3FN, #se>, tensor<8x4xf8E5M2, #ve> -> tensor<3x8xf32, #sv>
  // CHECK: transformer.head_loss_grad %{{.*}}, %{{.*}}, %{{.*}} counted(%[[ONE]] : tensor<f32>) scale 1.000000e+00
  %counted:3 = transformer.head_loss_grad %x, %w, %t counted(%one : tensor<f32>) scale 1.0 : tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>, tensor<3xi32, #s>
      -> tensor<f32>, tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>
  // CHECK: transformer.head_loss_grad %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00
  %2:3 = transformer.head_loss_grad %x, %w, %t scale 1.0 : tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>, tensor<3xi32, #s>
      -> tensor<f32>, tensor<3x4xf32, #se>, tensor<8x4xf32, #ve>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: !q, %k: !kv, %v: !kv, %begins: tensor<1x8xi32, #transformer.dims<batch, sequence>>, %half: !half, %own: !rows) {
  // CHECK: transformer.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 : tensor<1x8x4x2xf32
  %0:2 = transformer.attention %q, %k, %v scale 0.5 : !q, !kv, !kv -> !q, !lse
  // CHECK: transformer.attention %{{.*}}, %{{.*}}, %{{.*}} causal scale 5.000000e-01 window 4 dropout "a" rate 1.000000e-01 : tensor
  %1:2 = transformer.attention %q, %k, %v causal scale 0.5 window 4 dropout "a" rate 0.1 : !q, !kv, !kv -> !q, !lse
  // CHECK: %[[SEED:.*]] = transformer.step_input{{ +}}seed : tensor<i32>
  %seed = transformer.step_input seed : tensor<i32>
  // CHECK: transformer.attention %{{.*}}, %{{.*}}, %{{.*}} random(%[[SEED]], %[[SEED]], %[[SEED]] : tensor<i32>, tensor<i32>, tensor<i32>) causal
  %2:2 = transformer.attention %q, %k, %v random(%seed, %seed, %seed : tensor<i32>, tensor<i32>, tensor<i32>) causal scale 0.5
      dropout "a" rate 0.1 : !q, !kv, !kv -> !q, !lse
  // CHECK: transformer.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} causal scale 5.000000e-01 : tensor
  %3:3 = transformer.attention_grad %q, %k, %v, %0#0, %0#1, %q causal scale 0.5 : !q, !kv, !kv, !q, !lse, !q -> !q, !kv, !kv
  // CHECK: transformer.attention_grad {{.*}} random(%[[SEED]], {{.*}} scale 5.000000e-01 window 4 dropout "a" rate 1.000000e-01
  %4:3 = transformer.attention_grad %q, %k, %v, %2#0, %2#1, %q random(%seed, %seed, %seed : tensor<i32>, tensor<i32>, tensor<i32>)
      scale 0.5 window 4 dropout "a" rate 0.1 : !q, !kv, !kv, !q, !lse, !q -> !q, !kv, !kv
  // CHECK: transformer.attention %{{.*}}, %{{.*}}, %{{.*}} documents(%[[BEGINS:.*]] : tensor<1x8xi32, #{{.*}}>) random(%[[SEED]], {{.*}}) causal
  %6:2 = transformer.attention %q, %k, %v documents(%begins : tensor<1x8xi32, #transformer.dims<batch, sequence>>)
      random(%seed, %seed, %seed : tensor<i32>, tensor<i32>, tensor<i32>) causal scale 0.5 dropout "a" rate 0.1 : !q, !kv, !kv -> !q, !lse
  // CHECK: transformer.attention_grad {{.*}} documents(%[[BEGINS]] : tensor<1x8xi32, #{{.*}}>) causal
  %7:3 = transformer.attention_grad %q, %k, %v, %6#0, %6#1, %q documents(%begins : tensor<1x8xi32, #transformer.dims<batch, sequence>>)
      causal scale 0.5 : !q, !kv, !kv, !q, !lse, !q -> !q, !kv, !kv
  // CHECK: transformer.attention %[[HALF:.*]], %{{.*}}, %{{.*}} positions(%[[OWN:.*]] : tensor<4xi32, #{{.*}}>) causal scale 5.000000e-01 shared gathered : tensor<1x4x4x2xf32
  %8:2 = transformer.attention %half, %k, %v positions(%own : !rows) causal scale 0.5 shared gathered : !half, !kv, !kv -> !half, !half_lse
  // CHECK: transformer.attention_grad %[[HALF]], {{.*}} positions(%[[OWN]] : tensor<4xi32, #{{.*}}>) causal scale 5.000000e-01 shared gathered : tensor<1x4x4x2xf32
  %9:3 = transformer.attention_grad %half, %k, %v, %8#0, %8#1, %half positions(%own : !rows) causal scale 0.5 shared gathered
      : !half, !kv, !kv, !half, !half_lse, !half -> !half, !kv, !kv
  // CHECK: transformer.attention %[[HALF]], %[[HALF]], %[[HALF]] positions(%[[OWN]] : tensor<4xi32, #{{.*}}>) keys(%[[OWN]] : tensor<4xi32, #{{.*}}>) causal scale 5.000000e-01 keys 8 shared ring : tensor<1x4x4x2xf32
  %10:2 = transformer.attention %half, %half, %half positions(%own : !rows) keys(%own : !rows) causal scale 0.5 keys 8 shared ring : !half, !half, !half -> !half, !half_lse
  // CHECK: transformer.rotary_table inverse_frequencies [1.000000e+00, 5.000000e-01] scale 1.000000e+00 : tensor<8x4xf32
  %5:2 = transformer.rotary_table inverse_frequencies [1.0, 0.5] scale 1.0 : tensor<8x4xf32, #sd>
  return
}

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<8x4xf32, #ve>, %part: tensor<3x4xf32, #se>) {
  // CHECK: transformer.step_input{{ +}}learning_rate : tensor<f32>
  %0 = transformer.step_input learning_rate : tensor<f32>
  // CHECK: transformer.step_input{{ +}}bias_correction base 9.000000e-01 : tensor<f32>
  %c = transformer.step_input bias_correction base 0.9 : tensor<f32>
  // CHECK: transformer.state{{ +}}weight "w" : tensor<8x4xf32
  %1 = transformer.state weight "w" : tensor<8x4xf32, #ve>
  // CHECK: transformer.state{{ +}}optimizer "w" slot "first_moment" : tensor<8x4xf32
  %2 = transformer.state optimizer "w" slot "first_moment" : tensor<8x4xf32, #ve>
  // CHECK: transformer.state{{ +}}optimizer "w" slot "squares" initially 5.000000e-01 : tensor<8x4xf32
  %3 = transformer.state optimizer "w" slot "squares" initially 0.5 : tensor<8x4xf32, #ve>
  // CHECK: transformer.assign{{ +}}optimizer "w" slot "squares", %{{.*}} : tensor<8x4xf32
  transformer.assign optimizer "w" slot "squares", %x : tensor<8x4xf32, #ve>
  // CHECK: transformer.assign{{ +}}master "w", %{{.*}} : tensor<8x4xf32
  transformer.assign master "w", %x : tensor<8x4xf32, #ve>
  // CHECK: transformer.assign{{ +}}gradient "w" dim "vocab" offset 2, %{{.*}} : tensor<3x4xf32
  transformer.assign gradient "w" dim "vocab" offset 2, %part : tensor<3x4xf32, #se>
  // CHECK: transformer.accumulate{{ +}}gradient "w", %{{.*}} : tensor<8x4xf32
  transformer.accumulate gradient "w", %x : tensor<8x4xf32, #ve>
  // CHECK: transformer.accumulate{{ +}}magnitude "w" slot "input_now", %{{.*}} : tensor<f32>
  %now = transformer.state magnitude "w" slot "input_now" : tensor<f32>
  transformer.accumulate magnitude "w" slot "input_now", %now : tensor<f32>
  // CHECK: transformer.accumulate{{ +}}metric "counts" exact, %{{.*}} : tensor<8x4xf32
  transformer.accumulate metric "counts" exact, %x : tensor<8x4xf32, #ve>
  // CHECK: %[[COUNTS:.*]] = transformer.state{{ +}}metric "counts" : tensor<8x4xi32
  %counts = transformer.state metric "counts" : tensor<8x4xi32, #ve>
  // CHECK: transformer.assign{{ +}}metric "counts", %[[COUNTS]] : tensor<8x4xi32
  transformer.assign metric "counts", %counts : tensor<8x4xi32, #ve>
  return
}

// CHECK-LABEL: func.func @clusters
func.func @clusters(%x: tensor<4x8xf32, #se>) {
  // CHECK: transformer.fused rows #{{.*}} cols #{{.*}} ins(%{{.*}} : tensor<4x8xf32, #{{.*}}>) -> tensor<4xf32, #{{.*}}>, tensor<2x8xf32, #{{.*}}> {
  %0:2 = transformer.fused rows <sequence> cols <embed> ins(%x : tensor<4x8xf32, #se>) -> tensor<4xf32, #s>, tensor<2x8xf32, #ce> {
  ^bb0(%y: tensor<4x8xf32, #se>):
    %rows = transformer.reduce add %y over <embed> : tensor<4x8xf32, #se> -> tensor<4xf32, #s>
    %cols = transformer.reduce add %y over <sequence> : tensor<4x8xf32, #se> -> tensor<8xf32, #e>
    // CHECK: transformer.yield %{{.*}}, %{{.*}} : tensor<4xf32, #{{.*}}>, tensor<8xf32, #{{.*}}>
    transformer.yield %rows, %cols : tensor<4xf32, #s>, tensor<8xf32, #e>
  }
  // The chunks are added up in a cluster without rows.
  // CHECK: transformer.fused rows <> cols #{{.*}}
  %1 = transformer.fused rows <> cols <embed> ins(%0#1 : tensor<2x8xf32, #ce>) -> tensor<8xf32, #e> {
  ^bb0(%parts: tensor<2x8xf32, #ce>):
    %sum = transformer.reduce add %parts over <chunk> : tensor<2x8xf32, #ce> -> tensor<8xf32, #e>
    transformer.yield %sum : tensor<8xf32, #e>
  }
  return
}

// CHECK-LABEL: func.func @epilogues
func.func @epilogues(%x: tensor<4x8xf32, #se>, %w: tensor<8x16xf32, #transformer.dims<embed, ffn>>, %b: tensor<16xf32, #transformer.dims<ffn>>,
    %d: tensor<4x16xf32, #transformer.dims<sequence, ffn>>) {
  // CHECK: transformer.product "se,ef->sf" %{{.*}}, %{{.*}} bias %{{.*}} : tensor<16xf32, #{{.*}}>{{ +}}gelu :
  %y, %u = transformer.product "se,ef->sf" %x, %w bias %b : tensor<16xf32, #transformer.dims<ffn>> gelu :
      tensor<4x8xf32, #se>, tensor<8x16xf32, #transformer.dims<embed, ffn>> -> tensor<4x16xf32, #transformer.dims<sequence, ffn>>, tensor<4x16xf32, #transformer.dims<sequence, ffn>>
  // CHECK: transformer.product "se,ef->sf" %{{.*}}, %{{.*}} at %{{.*}} : tensor<4x16xf32, #{{.*}}>{{ +}}gelu_grad :
  %du = transformer.product "se,ef->sf" %x, %w at %u : tensor<4x16xf32, #transformer.dims<sequence, ffn>> gelu_grad :
      tensor<4x8xf32, #se>, tensor<8x16xf32, #transformer.dims<embed, ffn>> -> tensor<4x16xf32, #transformer.dims<sequence, ffn>>
  // CHECK: transformer.product "se,sf->ef" %{{.*}}, %{{.*}}{{ +}}sum_rhs : {{.*}}, tensor<1x16xf32,
  %dw, %sums = transformer.product "se,sf->ef" %x, %d sum_rhs :
      tensor<4x8xf32, #se>, tensor<4x16xf32, #transformer.dims<sequence, ffn>> -> tensor<8x16xf32, #transformer.dims<embed, ffn>>, tensor<1x16xf32, #transformer.dims<chunk, ffn>>
  return
}

// CHECK-LABEL: func.func @turns
func.func @turns(%x: tensor<4x8xf32, #se>, %sum: tensor<8xf32, #e>, %w: tensor<8xf32, #e>) -> tensor<4x8xf32, #se> {
  // CHECK: transformer.repeat 2 over "sequence" cut(%{{.*}} : tensor<4x8xf32, #{{.*}}>) carry(%{{.*}} : tensor<8xf32, #{{.*}}>) share(%{{.*}} : tensor<8xf32, #{{.*}}>) -> tensor<4x8xf32, #{{.*}}>, tensor<8xf32, #{{.*}}> {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<2x8xf32, #{{.*}}>, %{{.*}}: tensor<8xf32, #{{.*}}>, %{{.*}}: tensor<8xf32, #{{.*}}>):
  %y, %last = transformer.repeat 2 over "sequence" cut(%x : tensor<4x8xf32, #se>) carry(%sum : tensor<8xf32, #e>) share(%w : tensor<8xf32, #e>) -> tensor<4x8xf32, #se>, tensor<8xf32, #e> {
  ^bb0(%part: tensor<2x8xf32, #se>, %before: tensor<8xf32, #e>, %whole: tensor<8xf32, #e>):
    transformer.yield %part, %whole : tensor<2x8xf32, #se>, tensor<8xf32, #e>
  }
  return %y : tensor<4x8xf32, #se>
}

// CHECK-LABEL: func.func @stages
func.func @stages() {
  // CHECK: transformer.stage_list forward stage 0
  transformer.stage_list forward stage 0
  // CHECK: transformer.stage_list backward stage 3
  transformer.stage_list backward stage 3
  // CHECK: transformer.stage_list input_grad stage 1
  transformer.stage_list input_grad stage 1
  // CHECK: transformer.stage_list weight_grad stage 1
  transformer.stage_list weight_grad stage 1
  return
}
