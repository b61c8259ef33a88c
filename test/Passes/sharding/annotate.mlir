// RUN: meshwork-opt %s -sharding-annotate='axes=dp=2,tp=4 rules=batch=dp,ffn=tp,heads=tp,kv_heads=tp' | FileCheck %s
// RUN: meshwork-opt %s -sharding-annotate='axes=dp=2,tp=2 rules=batch=dp,residual_sequence=tp' | FileCheck %s --check-prefix=RESIDUAL
// RUN: meshwork-opt %s -sharding-annotate='axes=dp=2,tp=4 rules=ffn=tp,embed=dp/tp' | FileCheck %s --check-prefix=ORDER
// RUN: meshwork-opt %s -sharding-annotate='axes=cp=2,tp=2 rules=sequence=cp,residual_sequence=tp zigzag=cp' | FileCheck %s --check-prefix=ZIGZAG
// RUN: meshwork-opt %s -sharding-annotate='axes=dp=1' | FileCheck %s --check-prefix=NOTHING

#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#se = #transformer.dims<sequence, embed>
#ve = #transformer.dims<vocab, embed>
#fe = #transformer.dims<ffn, embed>
#hde = #transformer.dims<heads, head_dim, embed>
#kde = #transformer.dims<kv_heads, head_dim, embed>
!q = tensor<4x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!kv = tensor<4x8x2x2xf32, #transformer.dims<batch, sequence, kv_heads, head_dim>>
!lse = tensor<4x4x8xf32, #transformer.dims<batch, heads, sequence>>

// Two key heads on four ranks: the axis is cut in two, and only its major part
// splits them. What was whole "tp" is both parts.
// CHECK: mesh.mesh = #mesh.mesh<"dp"=2, "tp:(1)2"=2, "tp:(2)2"=2>
// CHECK: func.func @microbatch(
// CHECK-SAME: tensor<4x8xi32, {{.*}}> {mesh.sharding = #mesh.sharding<[{"dp"}, {}]>}, {{.*}} {mesh.sharding = #mesh.sharding<[{"dp"}, {}]>}

// ZIGZAG: func.func @microbatch(
// ZIGZAG-SAME: tensor<4x8xi32, {{.*}}> {mesh.sharding = #mesh.sharding<[{}, {"cp" zigzag}]>}
// ZIGZAG: mesh.shardings = [#mesh.sharding<[{}, {"cp" zigzag, "tp"}, {}]>]

// NOTHING: mesh.mesh = #mesh.mesh<"dp"=1>
func.func @microbatch(%tokens: tensor<4x8xi32, #bs>, %targets: tensor<4x8xi32, #bs>) {
  // CHECK: parameter "up" {{.*}} {mesh.shardings = [#mesh.sharding<[{"tp:(1)2", "tp:(2)2"}, {}]>]}
  // An axis splits one dim of a tensor: the first that has a rule for it.
  // ORDER: parameter "up" {{.*}} {mesh.shardings = [#mesh.sharding<[{"tp"}, {"dp"}]>]}
  // NOTHING: parameter "up" {{.*}} {mesh.shardings = [#mesh.sharding<[{}, {}]>]}
  %up = transformer.parameter "up" init <constant, 1.0> : tensor<16x8xf32, #fe>
  // CHECK: parameter "q" {{.*}} {mesh.shardings = [#mesh.sharding<[{"tp:(1)2", "tp:(2)2"}, {}, {}]>]}
  %q = transformer.parameter "q" init <constant, 1.0> : tensor<4x2x8xf32, #hde>
  // CHECK: parameter "k" {{.*}} {mesh.shardings = [#mesh.sharding<[{"tp:(1)2"}, {}, {}]>]}
  %k = transformer.parameter "k" init <constant, 1.0> : tensor<2x2x8xf32, #kde>
  // A rule for the residual stream is for floats with both dims, not for weights.
  // RESIDUAL: parameter "positions" {{.*}} {mesh.shardings = [#mesh.sharding<[{}, {}]>]}
  %p = transformer.parameter "positions" init <constant, 1.0> : tensor<8x8xf32, #se>
  %table = transformer.parameter "table" init <constant, 1.0> : tensor<12x8xf32, #ve>
  // RESIDUAL: transformer.embedding {{.*}} {mesh.shardings = [#mesh.sharding<[{"dp"}, {"tp"}, {}]>]}
  // CHECK: transformer.embedding
  // CHECK-NOT: mesh.shardings
  // CHECK: return
  %x = transformer.embedding %table, %tokens : tensor<12x8xf32, #ve>, tensor<4x8xi32, #bs> -> tensor<4x8x8xf32, #bse>
  // These say what is a head, and what the residual stream.
  %qs = transformer.contract "bse,hde->bshd" %x, %q : tensor<4x8x8xf32, #bse>, tensor<4x2x8xf32, #hde> -> !q
  %ks = transformer.contract "bse,hde->bshd" %x, %k : tensor<4x8x8xf32, #bse>, tensor<2x2x8xf32, #kde> -> !kv
  %o, %lse = transformer.attention %qs, %ks, %ks causal scale 0.5 : !q, !kv, !kv -> !q, !lse
  %loss:3 = transformer.head_loss_grad %x, %table, %targets scale 1.0 : tensor<4x8x8xf32, #bse>, tensor<12x8xf32, #ve>, tensor<4x8xi32, #bs> -> tensor<f32>, tensor<4x8x8xf32, #bse>, tensor<12x8xf32, #ve>
  return
}
