// RUN: meshwork-opt %s -transformer-expand-rounds=one-word | FileCheck %s

// Two layers whose tokens are exchanged over "ep", and a sum over "tp" between them. The narrow form runs no further
// round of either. One number says whether any rank that meets in the wide form needs one.
!x = tensor<6x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<6x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<6x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
!slots = tensor<4x5xi32, #transformer.dims<sequence, slots>>
!places = tensor<12x2xi32, #transformer.dims<sequence, choices>>
module attributes {mesh.mesh = #mesh.mesh<"ep" = 2, "tp" = 2>} {
  // CHECK-LABEL: func.func @microbatch
  func.func @microbatch(%x: !x, %c: !c, %p: !p, %g: !up, %u: !up, %d: !down, %dy: !x) -> !x {
    %first = mesh.coordinate over ["ep"] of 8 : tensor<i32>
    // CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %[[A:.*]] = transformer.assign_slots
    %s, %r, %pl, %n = transformer.assign_slots %c experts 4 most 6 : !c -> !slots, !c, !places, tensor<i32>
    // CHECK: %[[SUM:.*]] = transformer.add
    %sum = transformer.add %x, %x : !x, !x -> !x
    // CHECK-NOT: transformer.repeat
    %y = transformer.expert_rounds silu %x, %c, %p gate %g up %u down %d from %first of 8 rows 12 slots %s, %pl of %r last %n over ["ep"] to %sum
      : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
    // CHECK: %[[NARROW:.*]] = mesh.all_reduce %[[SUM]] sum over ["tp"]
    %z = mesh.all_reduce %y sum over ["tp"] cause "partial" : !x -> !x
    // CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %[[B:.*]] = transformer.assign_slots
    %s2, %r2, %pl2, %n2 = transformer.assign_slots %c experts 4 most 6 : !c -> !slots, !c, !places, tensor<i32>
    // CHECK: %[[LAST:.*]] = transformer.add %[[NARROW]]
    %sum2 = transformer.add %z, %z : !x, !x -> !x
    %w = transformer.expert_rounds silu %z, %c, %p gate %g up %u down %d from %first of 8 rows 12 slots %s2, %pl2 of %r2 last %n2 over ["ep"] to %sum2
      : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
    // CHECK: %[[ANY:.*]] = transformer.map ins(%[[A]], %[[B]]
    // CHECK: arith.maxsi
    // CHECK: arith.minsi
    // CHECK: %[[WORD:.*]] = mesh.all_reduce %[[ANY]] max over ["ep", "tp"]
    // CHECK: %[[WIDE:.*]] = transformer.repeat 1 over "wide" counted %[[WORD]] : tensor<i32> {{.*}}carry(%[[LAST]]
    // CHECK: transformer.repeat 1 over "sequence" counted
    // CHECK: mesh.all_reduce {{.*}} sum over ["tp"]
    // CHECK: transformer.repeat 1 over "sequence" counted
    // CHECK: transformer.yield
    // What is accumulated waits for the word.
    // CHECK: transformer.accumulate gradient "forward", %[[WIDE]]
    transformer.accumulate gradient "forward", %w : !x
    // CHECK: transformer.head
    %h = transformer.add %w, %dy {transformer.head} : !x, !x -> !x
    // Backward goes by the same word, and by what each layer counts only under it.
    // CHECK: transformer.repeat 1 over "wide" counted %[[WORD]]
    // CHECK: mesh.all_reduce {{.*}} max over ["ep"]
    // CHECK: transformer.repeat 1 over "sequence" counted
    %back = transformer.expert_rounds silu %x, %c, %p gate %g up %u down %d from %first of 8 rows 12 slots %s, %pl of %r last %n over ["ep"] to %h
      : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
    return %back : !x
  }

  // Each stage of a pipeline has a word. What is sent waits for it, and so does a stage that the rank hands to itself.
  // CHECK-LABEL: func.func @stages
  func.func @stages(%x: !x, %c: !c, %p: !p, %g: !up, %u: !up, %d: !down, %dy: !x) -> !x {
    %first = mesh.coordinate over ["ep"] of 8 : tensor<i32>
    %s, %r, %pl, %n = transformer.assign_slots %c experts 4 most 6 : !c -> !slots, !c, !places, tensor<i32>
    %sum = transformer.add %x, %x : !x, !x -> !x
    // CHECK: transformer.stage_list forward stage 0
    transformer.stage_list forward stage 0
    %y = transformer.expert_rounds silu %x, %c, %p gate %g up %u down %d from %first of 8 rows 12 slots %s, %pl of %r last %n over ["ep"] to %sum
      : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
    %z = transformer.expert_rounds silu %y, %c, %p gate %g up %u down %d from %first of 8 rows 12 slots %s, %pl of %r last %n over ["ep"] to %y
      : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
    // CHECK: %[[WORD0:.*]] = mesh.all_reduce %{{.*}} max over ["ep"]
    // CHECK: %[[WIDE0:.*]] = transformer.repeat 1 over "wide" counted %[[WORD0]]
    // CHECK: transformer.yield
    // CHECK: mesh.send forward %[[WIDE0]] over "tp" to 1
    mesh.send forward %z over "tp" to 1 : !x
    // CHECK: transformer.stage_list forward stage 3
    transformer.stage_list forward stage 3
    %s2, %r2, %pl2, %n2 = transformer.assign_slots %c experts 4 most 6 : !c -> !slots, !c, !places, tensor<i32>
    // CHECK: transformer.add %[[WIDE0]]
    %sum2 = transformer.add %z, %z : !x, !x -> !x
    %v = transformer.expert_rounds silu %z, %c, %p gate %g up %u down %d from %first of 8 rows 12 slots %s2, %pl2 of %r2 last %n2 over ["ep"] to %sum2
      : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
    %w = transformer.expert_rounds silu %v, %c, %p gate %g up %u down %d from %first of 8 rows 12 slots %s2, %pl2 of %r2 last %n2 over ["ep"] to %v
      : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
    // CHECK: %[[WORD3:.*]] = mesh.all_reduce %{{.*}} max over ["ep"]
    // CHECK: transformer.repeat 1 over "wide" counted %[[WORD3]]
    // CHECK: transformer.stage_list backward stage 3
    transformer.stage_list backward stage 3
    // CHECK: transformer.repeat 1 over "wide" counted %[[WORD3]]
    %back3 = transformer.expert_rounds silu %v, %c, %p gate %g up %u down %d from %first of 8 rows 12 slots %s2, %pl2 of %r2 last %n2 over ["ep"] to %w
      : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
    // CHECK: transformer.stage_list backward stage 0
    transformer.stage_list backward stage 0
    // CHECK: transformer.repeat 1 over "wide" counted %[[WORD0]]
    %back0 = transformer.expert_rounds silu %x, %c, %p gate %g up %u down %d from %first of 8 rows 12 slots %s, %pl of %r last %n over ["ep"] to %back3
      : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
    return %back0 : !x
  }
}
