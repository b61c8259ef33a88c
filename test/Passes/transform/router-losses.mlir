// RUN: meshwork-opt %s -transformer-router-losses="balance=layer balance-coefficient=0.5 z-coefficient=0.25 microbatches=2" | FileCheck %s
// RUN: meshwork-opt %s -transformer-router-losses="balance=none" | FileCheck %s --check-prefix=NONE
// RUN: meshwork-opt %s -transformer-router-losses | FileCheck %s --check-prefix=OWN
// RUN: meshwork-opt %s -transformer-router-losses=group=2 | FileCheck %s --check-prefix=GROUP

// One layer, 2 sequences of 8 tokens, 4 experts, 2 microbatches: 4 / 64 / (2 * 2) of f P, 1 / 16 / 2 of squares.
// CHECK-LABEL: func.func @loss
// CHECK: %[[CHOICES:.*]] = transformer.top_k
// The last router's losses come first, since each stands behind its choices.
// CHECK: arith.constant 3.125000e-02
// CHECK: transformer.auxiliary_loss "router_z" coefficient 2.500000e-01
// CHECK: transformer.pick_grad %{{.*}} at %[[CHOICES]]
// CHECK: transformer.contract "abc,ab->ac"
// CHECK: transformer.softmax
// CHECK: arith.constant 1.562500e-02
// CHECK: transformer.auxiliary_loss "balance_loss" coefficient 5.000000e-01
// NONE-NOT: auxiliary_loss
// OWN: transformer.auxiliary_loss "balance_loss" coefficient 2.000000e-02
// Both sequences are one group: 4 / 256 of f P.
// GROUP: %[[F:.*]] = transformer.contract "abc,ab->ac"
// GROUP: %[[FS:.*]] = transformer.contract "ab,bc->ac" %{{.*}}, %[[F]] : tensor<1x2xf32, {{.*}}>, {{.*}} -> tensor<1x4xf32
// GROUP: %[[PS:.*]] = transformer.contract "ab,bc->ac" {{.*}} -> tensor<1x4xf32
// GROUP: transformer.map ins(%[[FS]], %[[PS]]
// GROUP: arith.constant 1.562500e-02
!ids = tensor<2x8xi32, #transformer.dims<batch, sequence>>
!x = tensor<2x8x4xf32, #transformer.dims<batch, sequence, embed>>
!s = tensor<2x8x4xf32, #transformer.dims<batch, sequence, routed>>
!c = tensor<2x8x2xf32, #transformer.dims<batch, sequence, choices>>
!n = tensor<2x8x2xi32, #transformer.dims<batch, sequence, choices>>
!w = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!d = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
module attributes {transformer.balance_coefficient = 0.02 : f64} {
  func.func @loss(%tokens: !ids, %targets: !ids, %x: !x, %s: !s, %w: !w, %d: !d) -> !x {
    %choices = transformer.top_k %s : !s -> !n
    %weights = transformer.pick %s at %choices : !s, !n -> !c
    %y = transformer.experts silu %x, %choices, %weights gate %w up %w down %d : !x, !n, !c, !w, !d
    return %y : !x
  }
}
