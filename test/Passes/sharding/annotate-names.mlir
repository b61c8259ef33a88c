// RUN: meshwork-opt %s -sharding-annotate='axes=dp=2,tp=4 rules=b=dp,h=tp,g=tp,heads=tp,residual_sequence=tp' | FileCheck %s
// RUN: not meshwork-opt %s -sharding-annotate='axes=tp=3 rules=h=tp,g=tp,heads=tp' 2>&1 | FileCheck %s --check-prefix=WHOLE

// Names mean nothing here. Attention tells which dims are heads (queries have h,
// keys g), and the model's head tells which tensor is the residual stream. The
// dim called "heads" is another one, and ranks may have unequal parts of it.
!ids = tensor<4x8xi32, #transformer.dims<b, s>>
!x = tensor<4x8x8xf32, #transformer.dims<b, s, w>>
!q = tensor<4x8x4x2xf32, #transformer.dims<b, s, h, d>>
!kv = tensor<4x8x2x2xf32, #transformer.dims<b, s, g, d>>
!lse = tensor<4x4x8xf32, #transformer.dims<b, h, s>>
!wq = tensor<4x2x8xf32, #transformer.dims<h, d, w>>
!wk = tensor<2x2x8xf32, #transformer.dims<g, d, w>>
!up = tensor<10x8xf32, #transformer.dims<heads, w>>
!table = tensor<12x8xf32, #transformer.dims<v, w>>

// CHECK: mesh.mesh = #mesh.mesh<"dp"=2, "tp:(1)2"=2, "tp:(2)2"=2>
// CHECK: func.func @microbatch(
// CHECK-SAME: tensor<4x8xi32, {{.*}}> {mesh.sharding = #mesh.sharding<[{"dp"}, {}]>}
func.func @microbatch(%tokens: !ids, %targets: !ids) {
  // CHECK: parameter "q" {{.*}} {mesh.shardings = [#mesh.sharding<[{"tp:(1)2", "tp:(2)2"}, {}, {}]>]}
  // WHOLE-NOT: 'heads'
  // WHOLE: error: parameter 'k': dim 'g' of size 2 cannot be split over axis 'tp' of size 3; an axis of 2 ranks would divide it
  // WHOLE: error: parameter 'q': dim 'h' of size 4 cannot be split over axis 'tp' of size 3
  // WHOLE-NOT: 'heads'
  %q = transformer.parameter "q" init <constant, 1.0> : !wq
  // CHECK: parameter "k" {{.*}} {mesh.shardings = [#mesh.sharding<[{"tp:(1)2"}, {}, {}]>]}
  %k = transformer.parameter "k" init <constant, 1.0> : !wk
  // CHECK: parameter "up" {{.*}} {mesh.shardings = [#mesh.sharding<[{"tp:(1)2", "tp:(2)2"}, {}]>]}
  %up = transformer.parameter "up" init <constant, 1.0> : !up
  %table = transformer.parameter "table" init <constant, 1.0> : !table
  // CHECK: transformer.embedding {{.*}} {mesh.shardings = [#mesh.sharding<[{"dp"}, {"tp:(1)2", "tp:(2)2"}, {}]>]}
  %x = transformer.embedding %table, %tokens : !table, !ids -> !x
  %qs = transformer.contract "bsw,hdw->bshd" %x, %q : !x, !wq -> !q
  %ks = transformer.contract "bsw,gdw->bsgd" %x, %k : !x, !wk -> !kv
  %o, %lse = transformer.attention %qs, %ks, %ks causal scale 0.5 : !q, !kv, !kv -> !q, !lse
  %loss:3 = transformer.head_loss_grad %x, %table, %targets scale 1.0 : !x, !table, !ids -> tensor<f32>, !x, !table
  return
}
