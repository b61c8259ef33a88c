// RUN: meshwork-opt %s -transformer-expand-experts | FileCheck %s

// A rank with two of four experts, and both passes: what one has built the other
// takes. Of a token's three choices at most two are of this rank, so there are twelve
// rows.
!x = tensor<6x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<6x3xi32, #transformer.dims<sequence, choices>>
!p = tensor<6x3xf32, #transformer.dims<sequence, choices>>
!up = tensor<2x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<2x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%x: !x, %c: !c, %p: !p, %g: !up, %u: !up, %d: !down, %dy: !x, %first: tensor<i32>) -> (!x, !x, !p, !up, !up, !down) {
  // CHECK: %[[ORDER:.*]], %[[TOKENS:.*]], %[[PLACES:.*]], %[[BEGINS:.*]] = transformer.sort_rows %[[C:.*]] from %{{.*}} : tensor<i32> : tensor<6x3xi32, {{.*}}> -> tensor<12xi32, #{{.*}}>, tensor<3xi32
  // CHECK: %[[X:.*]] = transformer.take_rows %{{.*}} at %[[TOKENS]] : {{.*}} -> tensor<12x4xf32
  // CHECK: %[[P:.*]] = transformer.take_rows %{{.*}} at %[[ORDER]] : {{.*}} -> tensor<12xf32
  // CHECK: %[[G:.*]] = transformer.grouped_product %[[X]], %{{.*}} by %[[BEGINS]]
  // CHECK: %[[U:.*]] = transformer.grouped_product %[[X]], %{{.*}} by %[[BEGINS]]
  // CHECK: %[[H:.*]] = transformer.map ins(%[[G]], %[[U]], %[[P]]
  // CHECK: %[[O:.*]] = transformer.grouped_product %[[H]], %{{.*}} by %[[BEGINS]] about 9 : {{.*}} -> tensor<12x4xf32
  // CHECK: %[[Y:.*]] = transformer.combine_rows %[[O]] at %[[PLACES]] of %[[C]]
  %y = transformer.experts silu %x, %c, %p gate %g up %u down %d from %first : tensor<i32> of 4 : !x, !c, !p, !up, !down
  // CHECK-NOT: transformer.sort_rows
  // CHECK: %[[DY:.*]] = transformer.take_rows %{{.*}} at %[[TOKENS]]
  // CHECK: %[[DH:.*]] = transformer.grouped_product %[[DY]], %{{.*}} by %[[BEGINS]] about 9 : {{.*}} -> tensor<12x8xf32
  // CHECK: transformer.map ins(%[[G]], %[[U]], %[[P]], %[[DH]]
  // CHECK: transformer.reduce add %{{.*}} over #expert_ffn
  // CHECK: transformer.combine_rows
  // CHECK: transformer.take_rows %{{.*}} at %[[PLACES]] : {{.*}} -> tensor<6x3xf32
  // CHECK: transformer.grouped_gradient %{{.*}}, %[[X]] by %[[BEGINS]] about 9 : {{.*}} -> tensor<2x8x4xf32
  // CHECK: transformer.grouped_gradient %{{.*}}, %[[X]] by %[[BEGINS]] about 9 : {{.*}} -> tensor<2x8x4xf32
  // CHECK: transformer.grouped_gradient %[[DY]], %{{.*}} by %[[BEGINS]] about 9 : {{.*}} -> tensor<2x4x8xf32
  %dx, %dp, %dg, %du, %dd = transformer.experts_grad silu %x, %c, %p gate %g up %u down %d of %dy from %first : tensor<i32> of 4 : !x, !c, !p, !up, !down
  return %y, %dx, %dp, %dg, %du, %dd : !x, !x, !p, !up, !up, !down
}
