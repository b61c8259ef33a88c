// Attention in a ring: keys of one rank after the other come to each rank's
// queries. What causality or the window empties for all ranks is absent.
// RUN: meshwork-opt %s -split-input-file -partition-localize | FileCheck %s

// Blocks: rank i sees the keys of ranks up to i. A rank passes on what those
// behind it need: keys of rank 0 go all the way, those of rank 2 nowhere.
!q = tensor<1x6x2x4xbf16, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x2x6xf32, #transformer.dims<batch, heads, sequence>>
module attributes {mesh.mesh = #mesh.mesh<"cp"=3>} {
// CHECK-LABEL: func.func @blocks
// CHECK-SAME: (%[[Q:.*]]: tensor<1x2x2x4xbf16
func.func @blocks(%q: !q {mesh.sharding = #mesh.sharding<[{}, {"cp"}, {}, {}]>}) {
  // CHECK: %[[ROWS:.*]] = mesh.positions of 6 over {"cp"} : tensor<2xi32
  // CHECK: %[[K1:.*]] = mesh.permute %[[Q]] sources [-1, 0, 1] over ["cp"] cause "keys of attention" why "go around a ring (context.method)"
  // CHECK: %[[V1:.*]] = mesh.permute %[[Q]] sources [-1, 0, 1]
  // CHECK: %[[OWN:.*]] = mesh.positions of 6 over {"cp"} :
  // CHECK: %[[O0:.*]], %[[L0:.*]] = transformer.attention %[[Q]], %[[Q]], %[[Q]] positions(%[[ROWS]] : {{.*}}) keys(%[[OWN]] : {{.*}}) causal scale 5.000000e-01 keys 6 {{.*}} -> tensor<1x2x2x4xf32
  // CHECK: %[[K2:.*]] = mesh.permute %[[K1]] sources [-1, -1, 1]
  // CHECK: %[[V2:.*]] = mesh.permute %[[V1]] sources [-1, -1, 1]
  // CHECK: %[[HOP1:.*]] = mesh.positions of 6 over {"cp"} hop 1 :
  // CHECK: %[[O1:.*]], %[[L1:.*]] = transformer.attention %[[Q]], %[[K1]], %[[V1]] positions(%[[ROWS]] : {{.*}}) keys(%[[HOP1]]
  // CHECK: transformer.map ins(%[[L0]], %[[L1]]
  // CHECK: transformer.attention %[[Q]], %[[K2]], %[[V2]]
  // CHECK-NOT: mesh.permute
  %o, %l = transformer.attention %q, %q, %q causal scale 0.5 shared ring {mesh.shardings = [#mesh.sharding<[{}, {"cp"}, {}, {}]>, #mesh.sharding<[{}, {}, {"cp"}]>]} : !q, !q, !q -> !q, !lse
  return
}
}

// -----

// A window of 2 rows in blocks of 2: no query sees keys of two ranks before.
!q = tensor<1x6x2x4xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x2x6xf32, #transformer.dims<batch, heads, sequence>>
module attributes {mesh.mesh = #mesh.mesh<"cp"=3>} {
// CHECK-LABEL: func.func @window
func.func @window(%q: !q {mesh.sharding = #mesh.sharding<[{}, {"cp"}, {}, {}]>}) {
  // CHECK-COUNT-2: mesh.permute {{.*}} sources [-1, 0, 1]
  // CHECK-NOT: mesh.permute
  %o, %l = transformer.attention %q, %q, %q causal scale 0.5 window 2 shared ring {mesh.shardings = [#mesh.sharding<[{}, {"cp"}, {}, {}]>, #mesh.sharding<[{}, {}, {"cp"}]>]} : !q, !q, !q -> !q, !lse
  return
}
}

// -----

// In zigzag of 8 chunks a rank's two see only the chunks before them, which the
// ranks beside it have: nothing stops two ranks away.
!q = tensor<1x16x2x4xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x2x16xf32, #transformer.dims<batch, heads, sequence>>
module attributes {mesh.mesh = #mesh.mesh<"cp"=4>} {
// CHECK-LABEL: func.func @near
func.func @near(%q: !q {mesh.sharding = #mesh.sharding<[{}, {"cp" zigzag}, {}, {}]>}) {
  // CHECK-COUNT-2: mesh.permute %arg0 sources [-1, 0, 1, 2]
  // CHECK-COUNT-2: mesh.permute %arg0 sources [1, 2, 3, -1]
  // CHECK: mesh.positions of 16 over {"cp" zigzag} hop 3
  %o, %l = transformer.attention %q, %q, %q causal scale 0.5 window 2 shared ring {mesh.shardings = [#mesh.sharding<[{}, {"cp" zigzag}, {}, {}]>, #mesh.sharding<[{}, {}, {"cp" zigzag}]>]} : !q, !q, !q -> !q, !lse
  return
}
}

// -----

// Backward: a rank's own keys come last, and their gradients, summed in each
// hop, come home with the last one. In zigzag every rank sees keys of all.
!q = tensor<1x12x2x4xbf16, #transformer.dims<batch, sequence, heads, head_dim>>
!lse = tensor<1x2x12xf32, #transformer.dims<batch, heads, sequence>>
#of = #mesh.sharding<[{}, {"cp" zigzag}, {}, {}]>
module attributes {mesh.mesh = #mesh.mesh<"cp"=3>} {
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: (%[[Q:.*]]: tensor<1x4x2x4xbf16
func.func @gradient(%q: !q {mesh.sharding = #of}, %lse: !lse {mesh.sharding = #mesh.sharding<[{}, {}, {"cp" zigzag}]>}) {
  // CHECK: %[[K1:.*]] = mesh.permute %[[Q]] sources [2, 0, 1]
  // CHECK: mesh.permute %[[K1]] sources [2, 0, 1]
  // CHECK: %[[DQ1:.*]], %[[DK1:.*]], %[[DV1:.*]] = transformer.attention_grad %[[Q]], %[[K1]], {{.*}} -> tensor<1x4x2x4xf32
  // CHECK: %[[PASSED:.*]] = mesh.permute %[[DK1]] sources [2, 0, 1] over ["cp"] cause "gradients of keys of attention" why "go around a ring (context.method)"
  // CHECK: %{{.*}}, %[[DK2:.*]], %{{.*}} = transformer.attention_grad
  // CHECK: %[[SUM:.*]] = transformer.map ins(%[[PASSED]], %[[DK2]]
  // CHECK: %[[HOME:.*]] = mesh.permute %[[SUM]] sources [2, 0, 1]
  // CHECK: %{{.*}}, %[[DK0:.*]], %{{.*}} = transformer.attention_grad %[[Q]], %[[Q]], %[[Q]],
  // CHECK: transformer.map ins(%[[HOME]], %[[DK0]]
  %g:3 = transformer.attention_grad %q, %q, %q, %q, %lse, %q causal scale 0.5 shared ring {mesh.shardings = [#of, #of, #of]} : !q, !q, !q, !q, !lse, !q -> !q, !q, !q
  return
}
}
