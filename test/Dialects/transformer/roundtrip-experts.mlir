// What is printed reads back as the same, in the pretty and in the generic form.
// RUN: meshwork-opt %s | meshwork-opt | FileCheck %s
// RUN: meshwork-opt %s -mlir-print-op-generic | meshwork-opt | FileCheck %s

!x = tensor<2x3x4xf32, #transformer.dims<batch, sequence, embed>>
!r = tensor<2x3x6xf32, #transformer.dims<batch, sequence, routed>>
!c = tensor<2x3x2xi32, #transformer.dims<batch, sequence, choices>>
!p = tensor<2x3x2xf32, #transformer.dims<batch, sequence, choices>>
!up = tensor<6x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<6x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
!numbers = tensor<12xi32, #transformer.dims<rows>>
!begins = tensor<7xi32, #transformer.dims<begins>>
!rows = tensor<12x4xf32, #transformer.dims<rows, embed>>
!inner = tensor<12x8xf32, #transformer.dims<rows, expert_ffn>>

// CHECK-LABEL: func.func @whole
func.func @whole(%x: !x, %r: !r, %c: !c, %g: !up, %u: !up, %d: !down, %first: tensor<i32>, %scale: tensor<f32>) {
  // CHECK: %[[S:.*]] = transformer.softmax %{{.*}} : tensor<2x3x6xf32
  %s = transformer.softmax %r : !r
  // CHECK: %[[P:.*]] = transformer.pick %[[S]] at %{{.*}} : tensor<2x3x6xf32, {{.*}}>, tensor<2x3x2xi32, {{.*}}> -> tensor<2x3x2xf32
  %p = transformer.pick %s at %c : !r, !c -> !p
  // CHECK: transformer.pick_grad %[[P]] at %{{.*}} : tensor<2x3x2xf32, {{.*}}>, tensor<2x3x2xi32, {{.*}}> -> tensor<2x3x6xf32
  %ds = transformer.pick_grad %p at %c : !p, !c -> !r
  // CHECK: %[[Y:.*]] = transformer.experts gelu %{{.*}}, %{{.*}}, %[[P]] gate %{{.*}} up %{{.*}} down %{{.*}} : tensor<2x3x4xf32
  %y = transformer.experts gelu %x, %c, %p gate %g up %u down %d : !x, !c, !p, !up, !down
  // CHECK: transformer.experts_grad gelu %{{.*}}, %{{.*}}, %[[P]] gate %{{.*}} up %{{.*}} down %{{.*}} of %[[Y]] from %{{.*}} : tensor<i32> of 12 : tensor<2x3x4xf32
  %dx, %dp, %dg, %du, %dd = transformer.experts_grad gelu %x, %c, %p gate %g up %u down %d of %y from %first : tensor<i32> of 12 : !x, !c, !p, !up, !down
  // CHECK: transformer.experts gelu {{.*}} down %{{.*}} rounded %{{.*}} : tensor<f32> -> tensor<f32> : tensor<2x3x4xf32
  %ry, %rm = transformer.experts gelu %x, %c, %p gate %g up %u down %d rounded %scale : tensor<f32> -> tensor<f32> : !x, !c, !p, !up, !down
  // CHECK: transformer.experts_grad gelu {{.*}} of 12 rounded %{{.*}}, %{{.*}}, %{{.*}} : tensor<f32>, tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32> : tensor<2x3x4xf32
  %rx, %rp, %rg, %ru, %rd, %gm:2 = transformer.experts_grad gelu %x, %c, %p gate %g up %u down %d of %y from %first : tensor<i32> of 12
      rounded %scale, %scale, %scale : tensor<f32>, tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32> : !x, !c, !p, !up, !down
  // CHECK: transformer.experts gelu {{.*}} from %{{.*}} : tensor<i32> of 12 exchanged 1.250000e+00 over ["ep"] : tensor<2x3x4xf32
  %z = transformer.experts gelu %x, %c, %p gate %g up %u down %d from %first : tensor<i32> of 12 exchanged 1.25 over ["ep"] : !x, !c, !p, !up, !down
  // CHECK: transformer.experts_grad gelu {{.*}} of %{{.*}} exchanged 1.000000e+00 : tensor<2x3x4xf32
  %ex, %ep, %eg, %eu, %ed = transformer.experts_grad gelu %x, %c, %p gate %g up %u down %d of %y exchanged 1.0 : !x, !c, !p, !up, !down
  // CHECK: %[[K:.*]] = transformer.limit_choices %{{.*}} experts 6 most 2 group 2 : tensor<2x3x2xi32
  %k = transformer.limit_choices %c experts 6 most 2 group 2 : !c
  // CHECK: transformer.limit_choices %{{.*}} experts 6 most 1 : tensor<2x3x2xi32
  %k1 = transformer.limit_choices %c experts 6 most 1 : !c
  // CHECK: transformer.experts gelu %{{.*}}, %[[K]], %{{.*}} capacity 2 group 2 : tensor<2x3x4xf32
  %ky = transformer.experts gelu %x, %k, %p gate %g up %u down %d capacity 2 group 2 : !x, !c, !p, !up, !down
  // CHECK: transformer.experts_grad gelu %{{.*}}, %[[K]], {{.*}} capacity 2 group 2 : tensor<2x3x4xf32
  %kx, %kp, %kg, %ku, %kd = transformer.experts_grad gelu %x, %k, %p gate %g up %u down %d of %y capacity 2 group 2 : !x, !c, !p, !up, !down
  return
}

// CHECK-LABEL: func.func @rows
func.func @rows(%x: !x, %c: !c, %pick: !p, %u: !up, %d: !down, %first: tensor<i32>) {
  // CHECK: %[[O:.*]], %[[T:.*]], %[[P:.*]], %[[B:.*]] = transformer.sort_rows %{{.*}} from %{{.*}} : tensor<i32> most 12 : tensor<2x3x2xi32, {{.*}}> -> tensor<12xi32, {{.*}}>, tensor<7xi32
  %o, %t, %p, %b = transformer.sort_rows %c from %first : tensor<i32> most 12 : !c -> !numbers, !begins
  // CHECK: transformer.assign_slots %{{.*}} experts 6 most 6 : tensor<2x3x2xi32, {{.*}}> -> tensor<4x3xi32, {{.*}}>, tensor<2x3x2xi32, {{.*}}>, tensor<4x3x2xi32, {{.*}}>, tensor<i32>
  %as, %ar, %ap, %al = transformer.assign_slots %c experts 6 most 6 : !c -> tensor<4x3xi32, #transformer.dims<batch, slots>>, !c, tensor<4x3x2xi32, #transformer.dims<batch, sequence, choices>>, tensor<i32>
  // CHECK: transformer.expert_rounds silu {{.*}} from %{{.*}} of 12 rows 8 slots %{{.*}}, %{{.*}} of %{{.*}} last %{{.*}} over ["ep"] to %{{.*}} : {{.*}}, tensor<i32> to tensor<2x3x4xf32, {{.*}}> -> tensor<2x3x4xf32
  %more = transformer.expert_rounds silu %x, %c, %pick gate %u up %u down %d from %first of 12 rows 8 slots %as, %ap of %ar last %al over ["ep"] to %x : !x, !c, !p, !up, !down, tensor<i32>, tensor<4x3xi32, #transformer.dims<batch, slots>>, tensor<4x3x2xi32, #transformer.dims<batch, sequence, choices>>, !c, tensor<i32> to !x -> !x
  // CHECK: transformer.take_rows %{{.*}} at %{{.*}} : tensor<2x3x2xi32, {{.*}}>, tensor<4x3xi32, {{.*}}> -> tensor<4x3x2xi32
  %ac = transformer.take_rows %c at %as : !c, tensor<4x3xi32, #transformer.dims<batch, slots>> -> tensor<4x3x2xi32, #transformer.dims<batch, slots, choices>>
  // CHECK: %[[R:.*]] = transformer.take_rows %{{.*}} at %[[T]] : tensor<2x3x4xf32, {{.*}}>, tensor<12xi32, {{.*}}> -> tensor<12x4xf32
  %r = transformer.take_rows %x at %t : !x, !numbers -> !rows
  // CHECK: %[[I:.*]] = transformer.grouped_product %[[R]], %{{.*}} by %[[B]] : tensor<12x4xf32, {{.*}}>, tensor<6x8x4xf32, {{.*}}>, tensor<7xi32, {{.*}}> -> tensor<12x8xf32
  %i = transformer.grouped_product %r, %u by %b : !rows, !up, !begins -> !inner
  // CHECK: %[[J:.*]] = transformer.grouped_product %[[I]], %{{.*}} by %[[B]] : tensor<12x8xf32, {{.*}}>, tensor<6x4x8xf32, {{.*}}>, tensor<7xi32, {{.*}}> -> tensor<12x4xf32
  %j = transformer.grouped_product %i, %d by %b : !inner, !down, !begins -> !rows
  // CHECK: transformer.combine_rows %[[J]] at %[[P]] of %{{.*}} : tensor<12x4xf32, {{.*}}>, tensor<2x3x2xi32, {{.*}}> -> tensor<2x3x4xf32
  %y = transformer.combine_rows %j at %p of %c : !rows, !c -> !x
  // CHECK: transformer.grouped_gradient %[[I]], %[[R]] by %[[B]] about 7 : tensor<12x8xf32, {{.*}}>, tensor<12x4xf32, {{.*}}>, tensor<7xi32, {{.*}}> -> tensor<6x8x4xf32
  %dw = transformer.grouped_gradient %i, %r by %b about 7 : !inner, !rows, !begins -> !up
  return
}
