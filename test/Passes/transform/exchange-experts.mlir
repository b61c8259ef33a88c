// RUN: meshwork-opt %s -transformer-expand-experts | FileCheck %s
// RUN: meshwork-opt %s -transformer-expand-experts -transformer-expand-rounds | FileCheck %s --check-prefix=ROUNDS

// Two ranks with four of eight experts each. A token of two choices goes to 1.57 of them on average, so with a
// bound of 1 each has slots for 5 of 6 tokens, and one more round may come.
!x = tensor<6x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<6x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<6x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
module attributes {mesh.mesh = #mesh.mesh<"ep" = 2>} {
  // CHECK-LABEL: func.func @rounds
  func.func @rounds(%x: !x, %c: !c, %p: !p, %g: !up, %u: !up, %d: !down) -> !x {
    %first = mesh.coordinate over ["ep"] of 8 : tensor<i32>
    // CHECK: %[[SLOTS:.*]], %[[RANKS:.*]], %[[PLACES:.*]], %[[LAST:.*]] = transformer.assign_slots %[[C:.*]] experts 4 most 6 : tensor<6x2xi32, {{.*}}> -> tensor<4x5xi32, {{.*}}>, tensor<6x2xi32, {{.*}}>, tensor<12x2xi32, {{.*}}>, tensor<i32>
    // CHECK: %[[NOW:.*]] = transformer.slice %[[SLOTS]]
    // CHECK: %[[PLACE:.*]] = transformer.slice %[[PLACES]]
    // CHECK: transformer.take_rows %[[C]] at %[[NOW]] : {{.*}} -> tensor<2x5x2xi32
    // CHECK: mesh.all_to_all {{.*}} gather 1 split 0 over ["ep"]
    // CHECK: %[[X:.*]] = transformer.take_rows %{{.*}} at %[[NOW]] : {{.*}} -> tensor<2x5x4xf32
    // CHECK: mesh.all_to_all %[[X]] gather 1 split 0 over ["ep"] {{.*}} -> tensor<1x10x4xf32
    // CHECK: transformer.sort_rows {{.*}} most 12 : {{.*}} -> tensor<12xi32
    // CHECK: %[[SUMS:.*]] = transformer.combine_rows
    // CHECK: %[[BACK:.*]] = mesh.all_to_all %[[SUMS]] gather 0 split 1 over ["ep"] {{.*}} -> tensor<2x5x4xf32
    // CHECK: %[[Y:.*]] = transformer.combine_rows %[[BACK]] at %[[PLACE]] of %[[RANKS]] : {{.*}} -> tensor<6x4xf32
    // CHECK: transformer.expert_rounds silu {{.*}} rows 12 slots %[[SLOTS]], %[[PLACES]] of %[[RANKS]] last %[[LAST]] over ["ep"] to %[[Y]]
    // ROUNDS: %[[SLOTS:.*]], %[[RANKS:.*]], %[[PLACES:.*]], %[[LAST:.*]] = transformer.assign_slots
    // ROUNDS: %[[MORE:.*]] = mesh.all_reduce %[[LAST]] max over ["ep"]
    // ROUNDS: %[[S:.*]] = transformer.slice %[[SLOTS]] dim "sequence" offset 2
    // ROUNDS: %[[P:.*]] = transformer.slice %[[PLACES]] dim "sequence" offset 6
    // ROUNDS: transformer.repeat 1 over "sequence" counted %[[MORE]] : tensor<i32> cut(%[[S]], %[[P]] : {{.*}}) carry(
    // ROUNDS: mesh.all_to_all
    // ROUNDS: transformer.map
    // ROUNDS: transformer.yield
    %y = transformer.experts silu %x, %c, %p gate %g up %u down %d from %first : tensor<i32> of 8 exchanged 1.0 over ["ep"] : !x, !c, !p, !up, !down
    return %y : !x
  }

  // With slots for all tokens there is one round.
  // CHECK-LABEL: func.func @worst
  func.func @worst(%x: !x, %c: !c, %p: !p, %g: !up, %u: !up, %d: !down, %dy: !x) -> (!x, !p, !up, !up, !down) {
    %first = mesh.coordinate over ["ep"] of 8 : tensor<i32>
    // CHECK: transformer.assign_slots {{.*}} -> tensor<2x6xi32
    // CHECK-NOT: transformer.repeat
    // CHECK: transformer.grouped_gradient {{.*}} about 12
    // CHECK-NOT: transformer.repeat
    %dx, %dp, %dg, %du, %dd = transformer.experts_grad silu %x, %c, %p gate %g up %u down %d of %dy from %first : tensor<i32> of 8 exchanged 0x7FF0000000000000 over ["ep"] : !x, !c, !p, !up, !down
    return %dx, %dp, %dg, %du, %dd : !x, !p, !up, !up, !down
  }

  // Both passes have the first round's rows in common, and the number of rounds. A gradient of weights that is
  // accumulated is so in each round.
  // CHECK-LABEL: func.func @both
  // ROUNDS-LABEL: func.func @both
  func.func @both(%x: !x, %c: !c, %p: !p, %g: !up, %u: !up, %d: !down, %dy: !x) -> (!x, !x, !p) {
    %first = mesh.coordinate over ["ep"] of 8 : tensor<i32>
    // CHECK-COUNT-1: transformer.sort_rows
    // CHECK: transformer.expert_rounds
    %y = transformer.experts silu %x, %c, %p gate %g up %u down %d from %first : tensor<i32> of 8 exchanged 1.0 over ["ep"] : !x, !c, !p, !up, !down
    // CHECK-NOT: transformer.sort_rows
    // CHECK: transformer.expert_rounds {{.*}} of %{{.*}} : tensor<6x4xf32{{.*}} to %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
    // ROUNDS: transformer.repeat
    // ROUNDS: transformer.accumulate gradient "g"
    // ROUNDS: transformer.accumulate gradient "u"
    // ROUNDS: transformer.accumulate gradient "d"
    // ROUNDS: transformer.repeat
    // ROUNDS: transformer.accumulate gradient "g"
    // ROUNDS: transformer.accumulate gradient "u"
    // ROUNDS: transformer.accumulate gradient "d"
    // ROUNDS: transformer.yield
    %dx, %dp, %dg, %du, %dd = transformer.experts_grad silu %x, %c, %p gate %g up %u down %d of %dy from %first : tensor<i32> of 8 exchanged 1.0 over ["ep"] : !x, !c, !p, !up, !down
    transformer.accumulate gradient "g", %dg : !up
    transformer.accumulate gradient "u", %du : !up
    transformer.accumulate gradient "d", %dd : !down
    return %y, %dx, %dp : !x, !x, !p
  }
}
