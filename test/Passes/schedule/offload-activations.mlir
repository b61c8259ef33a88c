// RUN: meshwork-opt %s -schedule-offload-activations="policies=selective,offload least-bytes=64" | FileCheck %s
// RUN: meshwork-opt %s -schedule-offload-activations="policies=offload least-bytes=128" | FileCheck %s --check-prefix=LARGE
// RUN: meshwork-opt %s -schedule-offload-activations="policies=full least-bytes=64" | FileCheck %s --check-prefix=NONE
// RUN: not meshwork-opt %s -schedule-offload-activations="policies=some" 2>&1 | FileCheck %s --check-prefix=NAME

// NAME: policies option: found 'some', expected none, selective, offload, full or auto
// Nothing is as large, no layer asks for it.
// LARGE-NOT: on_host
// NONE-NOT: on_host
!b = memref<64xi8>
!m = memref<16xf32, strided<[1]>>
// CHECK: schedule.program @rank
schedule.program @rank {
  // Of layer 0, of no layer, passed on to another stage, used in forward alone.
  // CHECK-DAG: schedule.buffer "of layer 0"
  // CHECK-DAG: schedule.buffer "sent"
  // CHECK-DAG: %[[KEPT:.*]] = schedule.buffer "kept" activations : memref<64xi8>
  // CHECK-DAG: %[[HOST:.*]] = schedule.buffer "kept on the host" activations on_host : memref<64xi8>
  // CHECK-DAG: %[[BACK:.*]] = schedule.buffer "kept for backward" activations : memref<64xi8>
  // CHECK-NOT: on_host
  %a = schedule.buffer "of layer 0" activations : !b
  %k = schedule.buffer "kept" activations : !b
  %s = schedule.buffer "sent" activations : !b
  %f = schedule.buffer "forward alone" activations : !b
  // CHECK: schedule.list{{ +}}forward
  schedule.list forward {
    %va = schedule.view %a at 0 : !b to !m
    %vk = schedule.view %k at 0 : !b to !m
    %vs = schedule.view %s at 0 : !b to !m
    %vf = schedule.view %f at 0 : !b to !m
    schedule.fill "a" flops 0 bytes 64 1.0 to %va {transformer.layer = 0 : i64} : !m
    // Behind its last write, while forward still reads it.
    // CHECK: schedule.launch "k" {{.*}}(%{{.*}}, %{{.*}})
    // CHECK: schedule.copy "kept" flops 0 bytes 128
    // CHECK: schedule.launch "f"
    schedule.launch "k" flops 0 bytes 128 @k items 1 outputs 1 (%va, %vk) {transformer.layer = 1 : i64} : !m, !m
    schedule.launch "f" flops 0 bytes 128 @k items 1 outputs 2 (%vk, %vf, %vs) {transformer.layer = 1 : i64} : !m, !m, !m
  }
  schedule.list send {
    %vs = schedule.view %s at 0 : !b to !m
    schedule.send "s" flops 0 bytes 64 (%vs) along "pp" peer 1 : !m
  }
  // CHECK: schedule.list{{ +}}input_grad
  schedule.list input_grad {
    %va = schedule.view %a at 0 : !b to !m
    %vk = schedule.view %k at 0 : !b to !m
    %vs = schedule.view %s at 0 : !b to !m
    // CHECK: %[[FROM:.*]] = schedule.view %[[HOST]]
    // CHECK: %[[TO:.*]] = schedule.view %[[BACK]]
    // CHECK: schedule.copy "kept" flops 0 bytes 128 %[[FROM]] to %[[TO]]
    // CHECK: schedule.launch "i"
    schedule.launch "i" flops 0 bytes 128 @k items 1 outputs 1 (%vk, %vs, %va) : !m, !m, !m
  }
  // What may run later reads the same, which is brought once.
  // CHECK: schedule.list{{ +}}weight_grad
  // CHECK: schedule.view %[[BACK]]
  // CHECK-NOT: schedule.copy
  schedule.list weight_grad {
    %va = schedule.view %a at 0 : !b to !m
    %vk = schedule.view %k at 0 : !b to !m
    schedule.launch "w" flops 0 bytes 128 @k items 1 outputs 1 (%vk, %va) : !m, !m
  }
}
