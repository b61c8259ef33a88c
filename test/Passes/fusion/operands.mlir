// RUN: meshwork-opt %s -transformer-decompose -fusion-fuse=operands=8 | FileCheck %s
// RUN: meshwork-opt %s -transformer-decompose -fusion-fuse | FileCheck %s --check-prefix=ALL
// RUN: not meshwork-opt %s -transformer-decompose -fusion-fuse=operands=2 2>&1 | FileCheck %s --check-prefix=FEW

#e = #transformer.dims<embed>
!x = tensor<32xf32, #e>

// Twelve terms are more than a kernel may read: half of the sum is stored on the way.
// CHECK-LABEL: func.func @terms
// CHECK: %[[HALF:.*]] = transformer.fused rows {{.*}} ins(%arg5, %arg4, %arg3, %arg2, %arg1, %arg0 :
// CHECK: transformer.fused rows {{.*}} ins({{.*}}%[[HALF]]
// CHECK-NOT: transformer.fused
// ALL-COUNT-1: transformer.fused
// ALL-NOT: transformer.fused
// FEW: operands is 2, expected at least 8
func.func @terms(%a0: !x, %a1: !x, %a2: !x, %a3: !x, %a4: !x, %a5: !x, %a6: !x, %a7: !x, %a8: !x, %a9: !x, %a10: !x, %a11: !x) -> !x {
  %left1 = transformer.add %a0, %a1 : !x, !x -> !x
  %left2 = transformer.add %left1, %a2 : !x, !x -> !x
  %left3 = transformer.add %left2, %a3 : !x, !x -> !x
  %left4 = transformer.add %left3, %a4 : !x, !x -> !x
  %left = transformer.add %left4, %a5 : !x, !x -> !x
  %right7 = transformer.add %a6, %a7 : !x, !x -> !x
  %right8 = transformer.add %right7, %a8 : !x, !x -> !x
  %right9 = transformer.add %right8, %a9 : !x, !x -> !x
  %right10 = transformer.add %right9, %a10 : !x, !x -> !x
  %right = transformer.add %right10, %a11 : !x, !x -> !x
  %sum = transformer.add %left, %right : !x, !x -> !x
  return %sum : !x
}
