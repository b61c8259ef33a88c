// RUN: meshwork-opt %s -schedule-lower | FileCheck %s
// The slice of a replicated tensor is a view of it where its blocks fill it;
// else a copy, which has zeros behind the end of the tensor.

#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
!tokens = tensor<1x9xi32, #bs>

// CHECK: schedule.program @rank
// CHECK-DAG: %[[TOKENS:.*]] = schedule.buffer "tokens"
// CHECK-DAG: %[[FIRST:.*]] = schedule.buffer "coordinate over tp of 9" input persistent
// CHECK-DAG: %[[END:.*]] = schedule.buffer "extent over tp of 17" input persistent
// CHECK-DAG: %[[PART:.*]] = schedule.buffer "{{.*}}" activations : memref<12xi8>
// CHECK: schedule.input{{ +}}coordinate %{{.*}} over {"tp"} of 9
// CHECK: schedule.input{{ +}}extent %{{.*}} over {"tp"} of 17
// CHECK: schedule.list{{ +}}forward
// CHECK: %[[AT:.*]] = schedule.view %[[FIRST]]
// CHECK: %[[FROM:.*]] = schedule.view %[[TOKENS]]
// CHECK: %[[TO:.*]] = schedule.view %[[PART]]
// CHECK: schedule.copy_block "slice" flops 0 bytes 24 dim 1 %[[FROM]] from %[[AT]] to %[[TO]]
// CHECK-SAME: memref<1x9xi32, {{.*}} to memref<1x3xi32
// CHECK: schedule.view %[[TOKENS]] at 0 shifted [#schedule.shift<["x"], 12>]
// CHECK-NOT: schedule.copy_block
module attributes {mesh.mesh = #mesh.mesh<"x"=3, "tp"=4>} {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %t = transformer.parameter "t" init <constant, 1.0> : tensor<16x8xf32, #ve>
    %part = mesh.slice %tokens dim 1 over ["tp"] cause "a" : !tokens -> tensor<1x3xi32, #bs>
    %x = transformer.embedding %t, %part : tensor<16x8xf32, #ve>, tensor<1x3xi32, #bs> -> tensor<1x3x8xf32, #bse>
    %third = mesh.slice %tokens dim 1 over ["x"] cause "b" : !tokens -> tensor<1x3xi32, #bs>
    %n = mesh.extent over ["tp"] of 17 : tensor<i32>
    %y = transformer.embedding %t, %third from %n : tensor<i32> : tensor<16x8xf32, #ve>, tensor<1x3xi32, #bs> -> tensor<1x3x8xf32, #bse>
    return
  }
  func.func @update() {
    return
  }
}
