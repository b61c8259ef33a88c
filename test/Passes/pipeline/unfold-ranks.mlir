// RUN: meshwork-opt %s -split-input-file -pipeline-unfold-ranks | FileCheck %s

// Each rank again, in order. Names of more digits than a scope are others'.
// CHECK: schedule.program @rank0 along "pp" {
// CHECK: schedule.actions [0F0, 0SEND_F0]
// CHECK: schedule.program @rank1 along "pp" {
// CHECK: schedule.buffer "h.1.w (gradient)"
// CHECK: schedule.buffer "h.10.w"
// CHECK: schedule.actions [1F0, 1SEND_F0]
// CHECK: schedule.program @rank2 along "pp" {
// CHECK: schedule.buffer "h.2.w (gradient)"
// CHECK: schedule.buffer "h.10.w"
// CHECK: schedule.list forward stage 2
// CHECK: schedule.fill "h.2.w (gradient)" {{.*}} {transformer.layer = 2 : i64}
// CHECK: schedule.list send stage 2
// CHECK: schedule.send "activations to stage 3" {{.*}} along "pp" peer 3
// CHECK: schedule.actions [2F0, 2SEND_F0]
// CHECK: schedule.program @rank3 along "pp" {
// CHECK: schedule.actions [3F0]
// CHECK: func.func private @kernel_0
!b = memref<64xi8>
!m = memref<16xf32, strided<[1]>>
module {
  schedule.program @rank0 along "pp" {
    schedule.list forward {
    }
    schedule.list send {
    }
    schedule.actions [0F0, 0SEND_F0]
  }
  schedule.program @rank1 along "pp" attributes {schedule.equal_ranks = [
      #schedule.equal_rank<2, [2F0, 2SEND_F0], ["h.1", "h.2"], layers = [1, 2], stages = [1, 2], peers = [2, 3]>]} {
    %w = schedule.buffer "h.1.w (gradient)" activations : !b
    %v = schedule.buffer "h.10.w" activations : !b
    schedule.list forward stage 1 {
      %vw = schedule.view %w at 0 : !b to !m
      schedule.fill "h.1.w (gradient)" flops 0 bytes 64 1.0 to %vw {transformer.layer = 1 : i64} : !m
    }
    schedule.list send stage 1 {
      %vw = schedule.view %w at 0 : !b to !m
      schedule.send "activations to stage 2" flops 0 bytes 64 (%vw) along "pp" peer 2 : !m
    }
    schedule.actions [1F0, 1SEND_F0]
  }
  schedule.program @rank2 along "pp" {
    schedule.list forward stage 3 {
    }
    schedule.actions [3F0]
  }
  func.func private @kernel_0()
}

// -----

// Where no rank stands for others, nothing changes.
// CHECK-LABEL: module @alone
// CHECK-NEXT: schedule.program @rank
// CHECK-NOT: schedule.program
module @alone {
  schedule.program @rank {
  }
}
