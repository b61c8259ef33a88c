// RUN: meshwork-opt %s -split-input-file -schedule-offload-states="window-bytes=128" | FileCheck %s
// RUN: meshwork-opt %s -split-input-file -schedule-offload-states | FileCheck %s --check-prefix=ONE
// RUN: meshwork-opt %s -split-input-file -schedule-offload-states="window-bytes=128" -schedule-overlap="mode=always" | FileCheck %s --check-prefix=BESIDE

// Three windows go through two places on the device: a and b share one, c has
// 192 bytes, d the rest. What forward reads stays, and so does an f32 weight.
!b = memref<64xi8>
!c = memref<192xi8>
!m = memref<16xf32, strided<[1]>>
!l = memref<40xf32, strided<[1]>>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
  // CHECK-LABEL: schedule.program @rank
  // CHECK: schedule.buffer "w" weights
  // CHECK: %[[FIRST:.*]] = schedule.buffer "window of states" communication : memref<128xi8>
  // CHECK: %[[SECOND:.*]] = schedule.buffer "window of states" communication : memref<192xi8>
  // CHECK: %[[AB:.*]] = schedule.buffer "states of a, and 1 more" optimizer persistent on_host : memref<128xi8>
  // CHECK: %[[C:.*]] = schedule.buffer "states of c" optimizer persistent on_host : memref<192xi8>
  // CHECK: %[[D:.*]] = schedule.buffer "states of d" optimizer persistent on_host : memref<64xi8>
  // CHECK: schedule.buffer "read by forward" optimizer persistent : memref<64xi8>
  // ONE-LABEL: schedule.program @rank
  // ONE: schedule.buffer "window of states" communication : memref<384xi8>
  // ONE-NOT: "window of states"
  // ONE: schedule.buffer "states of a, and 3 more" optimizer persistent on_host : memref<384xi8>
  schedule.program @rank {
    %w = schedule.buffer "w" weights persistent : !b
    %a = schedule.buffer "a" optimizer persistent : !b
    %bb = schedule.buffer "b" optimizer persistent : !b
    %c = schedule.buffer "c" optimizer persistent : !c
    %d = schedule.buffer "d" optimizer persistent : !b
    %r = schedule.buffer "read by forward" optimizer persistent : !b
    schedule.list once {
      %vw = schedule.view %w at 0 : !b to !m
      %va = schedule.view %a at 0 : !b to !m
      %vb = schedule.view %bb at 0 : !b to !m
      // CHECK: %[[HELD:.*]] = schedule.view %[[AB]] at 64 : memref<128xi8>
      // CHECK: schedule.parameter "w" {{.*}} %[[HELD]])
      schedule.parameter "w" [16] of [16] #transformer.init<constant, 0.0>
        [#schedule.state<"weight", weight>, #schedule.state<"master", master>, #schedule.state<"momentum", optimizer>] (%vw, %va, %vb) : !m, !m, !m
    }
    schedule.list forward {
      %vw = schedule.view %w at 0 : !b to !m
      %vr = schedule.view %r at 0 : !b to !m
      schedule.launch "forward" flops 0 bytes 192 @k items 1 outputs 1 (%vr, %vw, %vw) : !m, !m, !m
    }
    // CHECK: schedule.list{{ +}}update
    // BESIDE: schedule.list{{ +}}update
    schedule.list update {
      %vw = schedule.view %w at 0 : !b to !m
      %va = schedule.view %a at 0 : !b to !m
      // CHECK: %[[FROM:.*]] = schedule.view %[[AB]] at 0 : memref<128xi8> to memref<32xi32, strided<[1]>>
      // CHECK: %[[TO:.*]] = schedule.view %[[FIRST]] at 0 : memref<128xi8> to memref<32xi32, strided<[1]>>
      // CHECK: schedule.copy "states of a, and 1 more" flops 0 bytes 256 %[[FROM]] to %[[TO]]
      // CHECK: schedule.launch "a"
      // What is brought next stands before the first use, and waits for nothing.
      // BESIDE: schedule.copy "states of a, and 1 more" {{.*}} channel 2
      // BESIDE: schedule.copy "states of c" {{.*}} channel 2
      // BESIDE: schedule.wait "states of a, and 1 more" flops 0 bytes 0 2 count 1
      // BESIDE: schedule.launch "a"
      // BESIDE: schedule.launch "b"
      // BESIDE: schedule.copy "states of a, and 1 more" {{.*}} channel 1
      schedule.launch "a" flops 0 bytes 192 @k items 1 outputs 1 (%va, %vw, %va) : !m, !m, !m
      // CHECK: %[[B:.*]] = schedule.view %[[FIRST]] at 64 : memref<128xi8> to memref<16xf32
      // CHECK: schedule.launch "b" {{.*}}, %[[B]])
      // CHECK: schedule.copy "states of a, and 1 more" flops 0 bytes 256
      %vb = schedule.view %bb at 0 : !b to !m
      schedule.launch "b" flops 0 bytes 192 @k items 1 outputs 1 (%vb, %vw, %vb) : !m, !m, !m
      // What is only read is not put back.
      // CHECK: schedule.copy "states of c" flops 0 bytes 384
      // CHECK: schedule.launch "c"
      // CHECK-NOT: schedule.copy "states of c"
      %vc = schedule.view %c at 0 : !c to !l
      schedule.launch "c" flops 0 bytes 192 @k items 1 outputs 1 (%vc, %vw, %vw) : !l, !m, !m
      // The first place is free again when its window is back.
      // CHECK: %[[LAST:.*]] = schedule.view %[[FIRST]] at 0 : memref<128xi8> to memref<16xi32
      // CHECK: schedule.copy "states of d" {{.*}} to %[[LAST]]
      // BESIDE: schedule.wait "states of a, and 1 more" flops 0 bytes 0 1 count 1
      // BESIDE: schedule.copy "states of d" {{.*}} channel 2
      // BESIDE: schedule.wait "states of c" flops 0 bytes 0 2 count 2
      // BESIDE: schedule.launch "c"
      // BESIDE: schedule.wait "states of d" flops 0 bytes 0 2 count 3
      // BESIDE: schedule.launch "d"
      // BESIDE: schedule.copy "states of d" {{.*}} channel 1
      // BESIDE: schedule.wait "states of d" flops 0 bytes 0 1 count 2
      %vd = schedule.view %d at 0 : !b to !m
      schedule.launch "d" flops 0 bytes 192 @k items 1 outputs 1 (%vd, %vw, %vd) : !m, !m, !m
    }
  }
}

// -----

// Without states nothing changes.
!b = memref<64xi8>
!m = memref<16xf32, strided<[1]>>
// CHECK-LABEL: schedule.program @no_states
// CHECK-NOT: on_host
// CHECK-NOT: schedule.copy
schedule.program @no_states {
  %w = schedule.buffer "w" weights persistent : !b
  schedule.list update {
    %vw = schedule.view %w at 0 : !b to !m
    schedule.launch "w" flops 0 bytes 192 @k items 1 outputs 1 (%vw, %vw) : !m, !m
  }
}

// -----

// Windows do not meet: what a later instruction uses again is of one with it.
!b = memref<64xi8>
!m = memref<16xf32, strided<[1]>>
// CHECK-LABEL: schedule.program @again
// CHECK: schedule.buffer "states of a, and 1 more" optimizer persistent on_host : memref<128xi8>
schedule.program @again {
  %a = schedule.buffer "a" optimizer persistent : !b
  %bb = schedule.buffer "b" optimizer persistent : !b
  schedule.list update {
    %va = schedule.view %a at 0 : !b to !m
    %vb = schedule.view %bb at 0 : !b to !m
    // CHECK: schedule.copy
    // CHECK-NOT: schedule.copy
    // CHECK: schedule.launch "3"
    // CHECK: schedule.copy
    schedule.launch "1" flops 0 bytes 192 @k items 1 outputs 1 (%va, %va) : !m, !m
    schedule.launch "2" flops 0 bytes 192 @k items 1 outputs 1 (%vb, %vb) : !m, !m
    schedule.launch "3" flops 0 bytes 192 @k items 1 outputs 1 (%va, %va) : !m, !m
  }
}
