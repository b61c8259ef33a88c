// RUN: meshwork-opt %s -transformer-limit-choices="capacity=1.0" | FileCheck %s --check-prefix=ONE
// RUN: meshwork-opt %s -transformer-limit-choices="capacity=1.1 group=2" | FileCheck %s --check-prefix=TWO
// RUN: meshwork-opt %s -transformer-limit-choices | FileCheck %s --check-prefix=NONE

// 4 sequences of 8 tokens with 2 choices of 4 experts: 4 choices an expert in a sequence, 8 in two, and 1.1 times as many, rounded up.
// Weights are those of all choices.
// ONE: %[[CHOICES:.*]] = transformer.top_k
// ONE: %[[WEIGHTS:.*]] = transformer.pick %{{.*}} at %[[CHOICES]]
// ONE: %[[KEPT:.*]] = transformer.limit_choices %[[CHOICES]] experts 4 most 4 : tensor<4x8x2xi32
// ONE: transformer.experts silu %{{.*}}, %[[KEPT]], %[[WEIGHTS]] gate {{.*}} capacity 4 group 1 :
// TWO: transformer.limit_choices %{{.*}} experts 4 most 9 group 2 : tensor<4x8x2xi32
// TWO: transformer.experts silu {{.*}} capacity 9 group 2 :
// NONE-NOT: limit_choices
// NONE-NOT: capacity
!ids = tensor<4x8xi32, #transformer.dims<batch, sequence>>
!x = tensor<4x8x4xf32, #transformer.dims<batch, sequence, embed>>
!s = tensor<4x8x4xf32, #transformer.dims<batch, sequence, routed>>
!c = tensor<4x8x2xf32, #transformer.dims<batch, sequence, choices>>
!n = tensor<4x8x2xi32, #transformer.dims<batch, sequence, choices>>
!w = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!d = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @loss(%tokens: !ids, %targets: !ids, %x: !x, %s: !s, %w: !w, %d: !d) -> !x {
  %choices = transformer.top_k %s : !s -> !n
  %weights = transformer.pick %s at %choices : !s, !n -> !c
  %y = transformer.experts silu %x, %choices, %weights gate %w up %w down %d : !x, !n, !c, !w, !d
  return %y : !x
}
