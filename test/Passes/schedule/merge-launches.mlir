// RUN: meshwork-opt %s -schedule-merge-launches | FileCheck %s
// RUN: meshwork-opt %s -schedule-merge-launches="operands=5" | FileCheck %s --check-prefix=FEW
// RUN: meshwork-opt %s -schedule-merge-launches="max-new-bytes=4096" | FileCheck %s --check-prefix=NEW
// RUN: not meshwork-opt %s -schedule-merge-launches="operands=0" 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: error: operands is 0, expected at least 1
!x = tensor<1024xf32, #transformer.dims<e>>
!s = tensor<f32>
module {
  // CHECK: schedule.program @rank
  schedule.program @rank {
    %a = schedule.buffer "a" optimizer persistent : memref<4096xi8>
    %b = schedule.buffer "b" optimizer persistent : memref<4096xi8>
    %c = schedule.buffer "c" optimizer persistent : memref<4096xi8>
    %d = schedule.buffer "d" optimizer persistent : memref<4096xi8>
    %t = schedule.buffer "t" activations : memref<4096xi8>
    %u = schedule.buffer "u" activations : memref<4096xi8>
    %rate = schedule.buffer "rate" input persistent : memref<4xi8>

    // Updates in place that need nothing of each other, and a fill, are one
    // launch, which reads the rate once. Equal kernels stand side by side.
    // CHECK-LABEL: schedule.list{{ +}}once
    // CHECK-NOT: schedule.fill
    // CHECK: schedule.launch "one, and 3 more like it" flops 3072 bytes 28684 @merged_0 items 4 outputs 4(%[[A:[0-9]+]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) :
    // CHECK-NOT: schedule.launch
    // Two updates have five operands: the rate, and what each reads and writes.
    // FEW-LABEL: schedule.list{{ +}}once
    // FEW: schedule.launch "one, and 1 more like it" {{.*}} @merged_0 items 2 outputs 2
    // FEW: schedule.launch "three, and 1 more like it" {{.*}} @merged_1 items 2 outputs 2
    schedule.list once {
      %a1 = schedule.view %a at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      %rate2 = schedule.view %rate at 0 : memref<4xi8> to memref<f32, strided<[]>>
      %a3 = schedule.view %a at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.launch "one" flops 1024 bytes 8196 @add items 1 outputs 1 (%a1, %rate2, %a3) : memref<1024xf32, strided<[1]>>, memref<f32, strided<[]>>, memref<1024xf32, strided<[1]>>
      %b4 = schedule.view %b at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      %rate5 = schedule.view %rate at 0 : memref<4xi8> to memref<f32, strided<[]>>
      %b6 = schedule.view %b at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.launch "two" flops 1024 bytes 8196 @add items 1 outputs 1 (%b4, %rate5, %b6) : memref<1024xf32, strided<[1]>>, memref<f32, strided<[]>>, memref<1024xf32, strided<[1]>>
      %c7 = schedule.view %c at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      %rate8 = schedule.view %rate at 0 : memref<4xi8> to memref<f32, strided<[]>>
      %c9 = schedule.view %c at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.launch "three" flops 1024 bytes 8196 @scale items 1 outputs 1 (%c7, %rate8, %c9) : memref<1024xf32, strided<[1]>>, memref<f32, strided<[]>>, memref<1024xf32, strided<[1]>>
      %d10 = schedule.view %d at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.fill "four" flops 0 bytes 4096 0.0 to %d10 : memref<1024xf32, strided<[1]>>
    }

    // What reads a result comes after what made it, with others of its kind.
    // CHECK-LABEL: schedule.list{{ +}}step
    // CHECK: schedule.launch "first, and 1 more like it" {{.*}} @merged_1
    // CHECK: schedule.launch "second, and 1 more like it" {{.*}} @merged_1
    // CHECK-NOT: schedule.launch
    // Both first results would be alive at once; the second first one comes with
    // the other's second.
    // NEW-LABEL: schedule.list{{ +}}step
    // NEW: schedule.launch "first" {{.*}} @add
    // NEW: schedule.launch "second, and 1 more like it" {{.*}} @merged_1
    // NEW: schedule.launch "other second" {{.*}} @add
    schedule.list step {
      %a11 = schedule.view %a at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      %rate12 = schedule.view %rate at 0 : memref<4xi8> to memref<f32, strided<[]>>
      %t13 = schedule.view %t at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.launch "first" flops 1024 bytes 8196 @add items 1 outputs 1 (%a11, %rate12, %t13) : memref<1024xf32, strided<[1]>>, memref<f32, strided<[]>>, memref<1024xf32, strided<[1]>>
      %t14 = schedule.view %t at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      %rate15 = schedule.view %rate at 0 : memref<4xi8> to memref<f32, strided<[]>>
      %b16 = schedule.view %b at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.launch "second" flops 1024 bytes 8196 @add items 1 outputs 1 (%t14, %rate15, %b16) : memref<1024xf32, strided<[1]>>, memref<f32, strided<[]>>, memref<1024xf32, strided<[1]>>
      %c17 = schedule.view %c at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      %rate18 = schedule.view %rate at 0 : memref<4xi8> to memref<f32, strided<[]>>
      %u19 = schedule.view %u at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.launch "other first" flops 1024 bytes 8196 @add items 1 outputs 1 (%c17, %rate18, %u19) : memref<1024xf32, strided<[1]>>, memref<f32, strided<[]>>, memref<1024xf32, strided<[1]>>
      %u20 = schedule.view %u at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      %rate21 = schedule.view %rate at 0 : memref<4xi8> to memref<f32, strided<[]>>
      %d22 = schedule.view %d at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.launch "other second" flops 1024 bytes 8196 @add items 1 outputs 1 (%u20, %rate21, %d22) : memref<1024xf32, strided<[1]>>, memref<f32, strided<[]>>, memref<1024xf32, strided<[1]>>
    }

    // Nothing moves across another kind of instruction; one that overwrites
    // what another reads, or what it writes, stays behind it.
    // CHECK-LABEL: schedule.list{{ +}}forward
    // CHECK: schedule.launch "before" {{.*}} @add
    // CHECK: schedule.matmul "product"
    // CHECK: schedule.launch "after" {{.*}} @add
    // CHECK: schedule.launch "overwrites an operand" {{.*}} @add
    // CHECK: schedule.fill "overwrites a result"
    schedule.list forward {
      %a23 = schedule.view %a at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      %rate24 = schedule.view %rate at 0 : memref<4xi8> to memref<f32, strided<[]>>
      %a25 = schedule.view %a at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.launch "before" flops 1024 bytes 8196 @add items 1 outputs 1 (%a23, %rate24, %a25) : memref<1024xf32, strided<[1]>>, memref<f32, strided<[]>>, memref<1024xf32, strided<[1]>>
      %mb = schedule.view %b at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %mc = schedule.view %c at 0 : memref<4096xi8> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      schedule.matmul "product" flops 65536 bytes 12288 no %mb, %mb to %mc : memref<1x32x32xf32, strided<[1024, 32, 1]>>, memref<1x32x32xf32, strided<[1024, 32, 1]>> to memref<1x32x32xf32, strided<[1024, 32, 1]>>
      %b26 = schedule.view %b at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      %rate27 = schedule.view %rate at 0 : memref<4xi8> to memref<f32, strided<[]>>
      %d28 = schedule.view %d at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.launch "after" flops 1024 bytes 8196 @add items 1 outputs 1 (%b26, %rate27, %d28) : memref<1024xf32, strided<[1]>>, memref<f32, strided<[]>>, memref<1024xf32, strided<[1]>>
      %d29 = schedule.view %d at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      %rate30 = schedule.view %rate at 0 : memref<4xi8> to memref<f32, strided<[]>>
      %b31 = schedule.view %b at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.launch "overwrites an operand" flops 1024 bytes 8196 @add items 1 outputs 1 (%d29, %rate30, %b31) : memref<1024xf32, strided<[1]>>, memref<f32, strided<[]>>, memref<1024xf32, strided<[1]>>
      %b32 = schedule.view %b at 0 : memref<4096xi8> to memref<1024xf32, strided<[1]>>
      schedule.fill "overwrites a result" flops 0 bytes 4096 0.0 to %b32 : memref<1024xf32, strided<[1]>>
    }
    schedule.list update {
    }
  }
  // CHECK: func.func private @filled_0() -> tensor<1024xf32, #element> attributes {schedule.strides = [array<i64: 1>]}
  // CHECK: transformer.fused rows <> cols #element -> tensor<1024xf32, #element>
  // CHECK: transformer.map -> tensor<1024xf32, #element>
  // CHECK: func.func private @merged_0(%{{.*}}: tensor<1024xf32, #e>, %[[RATE:[a-z0-9]+]]: tensor<f32>, %{{[a-z0-9]+}}: tensor<1024xf32, #e>, %{{[a-z0-9]+}}: tensor<1024xf32, #e>) ->
  // CHECK-NEXT: call @add(%{{.*}}, %[[RATE]])
  // CHECK-NEXT: call @add(%{{.*}}, %[[RATE]])
  // CHECK-NEXT: call @scale(%{{.*}}, %[[RATE]])
  // CHECK-NEXT: call @filled_0()
  // CHECK: func.func private @merged_1(
  // CHECK-NEXT: %[[ONE:.*]] = call @add(
  // CHECK-NEXT: %[[TWO:.*]] = call @add(
  // CHECK-NEXT: return %[[ONE]], %[[TWO]]
  // CHECK-NOT: @merged_
  func.func private @add(%x: !x, %s: !s) -> !x attributes {schedule.strides = [array<i64: 1>, array<i64>, array<i64: 1>]} {
    %y = transformer.fused rows <> cols <e> ins(%x, %s : !x, !s) -> !x {
    ^bb0(%a: !x, %b: !s):
      %z = transformer.map ins(%a, %b : !x, !s) -> !x {
      ^bb0(%e: f32, %f: f32):
        %0 = arith.addf %e, %f : f32
        transformer.yield %0 : f32
      }
      transformer.yield %z : !x
    }
    return %y : !x
  }
  func.func private @scale(%x: !x, %s: !s) -> !x attributes {schedule.strides = [array<i64: 1>, array<i64>, array<i64: 1>]} {
    %y = transformer.fused rows <> cols <e> ins(%x, %s : !x, !s) -> !x {
    ^bb0(%a: !x, %b: !s):
      %z = transformer.map ins(%a, %b : !x, !s) -> !x {
      ^bb0(%e: f32, %f: f32):
        %0 = arith.mulf %e, %f : f32
        transformer.yield %0 : f32
      }
      transformer.yield %z : !x
    }
    return %y : !x
  }
}
