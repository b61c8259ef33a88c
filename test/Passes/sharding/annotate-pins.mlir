// RUN: meshwork-opt %s -sharding-annotate='axes=dp=2,tp=4 rules=ffn=tp,kv_heads=tp pins={layers.0.up [{"dp"}p2, {"tp", ?}]},{layers.*.up [{}, {?}], replicated = {"tp"}}' | FileCheck %s

#fe = #transformer.dims<ffn, embed>
#kde = #transformer.dims<kv_heads, head_dim, embed>
!q = tensor<4x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!kv = tensor<4x8x2x2xf32, #transformer.dims<batch, sequence, kv_heads, head_dim>>
!lse = tensor<4x4x8xf32, #transformer.dims<batch, heads, sequence>>

func.func @microbatch(%tokens: tensor<4x8xi32, #transformer.dims<batch, sequence>>, %qs: !q, %ks: !kv) {
  %o, %lse = transformer.attention %qs, %ks, %ks causal scale 0.5 : !q, !kv, !kv -> !q, !lse
  %k = transformer.parameter "k" init <constant, 1.0> : tensor<2x2x8xf32, #kde>
  // The first pin that matches holds, with open dims and priorities; axes that
  // are cut become their parts.
  // CHECK: parameter "layers.0.up" {{.*}} {mesh.shardings = [#mesh.sharding<[{"dp"}p2, {"tp:(1)2", "tp:(2)2", ?}]>]}
  %0 = transformer.parameter "layers.0.up" init <constant, 1.0> : tensor<16x8xf32, #fe>
  // CHECK: parameter "layers.1.up" {{.*}} {mesh.shardings = [#mesh.sharding<[{}, {?}], replicated = {"tp:(1)2", "tp:(2)2"}>]}
  %1 = transformer.parameter "layers.1.up" init <constant, 1.0> : tensor<16x8xf32, #fe>
  // Without a pin, rules.
  // CHECK: parameter "down" {{.*}} {mesh.shardings = [#mesh.sharding<[{"tp:(1)2", "tp:(2)2"}, {}]>]}
  %2 = transformer.parameter "down" init <constant, 1.0> : tensor<16x8xf32, #fe>
  return
}
