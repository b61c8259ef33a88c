// Sums over chunks wait for the others of their layer.
// RUN: meshwork-opt %s -schedule-merge-launches | FileCheck %s
// RUN: meshwork-opt %s -schedule-merge-launches="max-held-bytes=2047" | FileCheck %s --check-prefix=NONE
// RUN: meshwork-opt %s -schedule-merge-launches="max-held-bytes=2048" | FileCheck %s --check-prefix=ONE
// RUN: not meshwork-opt %s -schedule-merge-launches="max-held-bytes=-1" 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: error: max-held-bytes is -1, expected at least 0
!p = tensor<8x64xf32, #transformer.dims<chunk, e>>
!g = tensor<64xf32, #transformer.dims<e>>
module {
  schedule.program @rank {
    %a = schedule.buffer "a" gradients persistent : memref<256xi8>
    %b = schedule.buffer "b" gradients persistent : memref<256xi8>
    %c = schedule.buffer "c" gradients persistent : memref<256xi8>
    %p = schedule.buffer "p" activations : memref<2048xi8>
    %q = schedule.buffer "q" activations : memref<2048xi8>
    %p2 = schedule.buffer "p2" activations : memref<2048xi8>
    %x = schedule.buffer "x" activations : memref<256xi8>
    %y = schedule.buffer "y" activations : memref<256xi8>

    // The sums of layer 1 are one launch behind the last of them; those of layer 0
    // are another, which stands at the end.
    // CHECK-NOT: schedule.launch
    // CHECK: schedule.matmul "first"
    // CHECK-NOT: schedule.launch
    // CHECK: schedule.matmul "second"
    // CHECK: schedule.launch "a, and 1 more like it" {{.*}} @merged_0 {{.*}} {transformer.layer = 1 : i64}
    // CHECK: schedule.matmul "third"
    // CHECK: schedule.launch "c" {{.*}} @sum
    // A limit of no chunks, or of fewer than a sum has: all stay.
    // NONE-LABEL: schedule.list{{ +}}step
    // NONE: schedule.launch "a"
    // NONE: schedule.matmul "first"
    // NONE: schedule.launch "b"
    // NONE: schedule.matmul "second"
    // NONE: schedule.launch "c"
    // NONE: schedule.matmul "third"
    // One waits, but not two.
    // ONE-LABEL: schedule.list{{ +}}step
    // ONE: schedule.matmul "first"
    // ONE: schedule.launch "a" {{.*}} @sum
    // ONE: schedule.matmul "second"
    // ONE: schedule.launch "b" {{.*}} @sum
    // ONE: schedule.matmul "third"
    // ONE: schedule.launch "c" {{.*}} @sum
    schedule.list once {
    }
    schedule.list step {
      %v1 = schedule.view %p at 0 : memref<2048xi8> to memref<8x64xf32, strided<[64, 1]>>
      %v2 = schedule.view %a at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      %v3 = schedule.view %a at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      schedule.launch "a" flops 512 bytes 2560 @sum items 1 outputs 1 (%v1, %v2, %v3) {transformer.layer = 1 : i64} : memref<8x64xf32, strided<[64, 1]>>, memref<64xf32, strided<[1]>>, memref<64xf32, strided<[1]>>
      %v4 = schedule.view %x at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v5 = schedule.view %y at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      schedule.matmul "first" flops 1024 bytes 768 no %v4, %v4 to %v5 : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v6 = schedule.view %q at 0 : memref<2048xi8> to memref<8x64xf32, strided<[64, 1]>>
      %v7 = schedule.view %b at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      %v8 = schedule.view %b at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      schedule.launch "b" flops 512 bytes 2560 @sum items 1 outputs 1 (%v6, %v7, %v8) {transformer.layer = 1 : i64} : memref<8x64xf32, strided<[64, 1]>>, memref<64xf32, strided<[1]>>, memref<64xf32, strided<[1]>>
      %v9 = schedule.view %x at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v10 = schedule.view %y at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      schedule.matmul "second" flops 1024 bytes 768 no %v9, %v9 to %v10 : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v11 = schedule.view %p2 at 0 : memref<2048xi8> to memref<8x64xf32, strided<[64, 1]>>
      %v12 = schedule.view %c at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      %v13 = schedule.view %c at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      schedule.launch "c" flops 512 bytes 2560 @sum items 1 outputs 1 (%v11, %v12, %v13) {transformer.layer = 0 : i64} : memref<8x64xf32, strided<[64, 1]>>, memref<64xf32, strided<[1]>>, memref<64xf32, strided<[1]>>
      %v14 = schedule.view %x at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v15 = schedule.view %y at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      schedule.matmul "third" flops 1024 bytes 768 no %v14, %v14 to %v15 : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
    }

    // What overwrites the chunks, or reads the sum, ends the wait; a result that
    // does not stay in memory never waits.
    // CHECK-LABEL: schedule.list{{ +}}forward
    // CHECK: schedule.matmul "beside"
    // CHECK: schedule.launch "overwritten" {{.*}} @sum
    // CHECK: schedule.matmul "overwrites"
    // CHECK: schedule.matmul "still beside"
    // CHECK: schedule.launch "is read" {{.*}} @sum
    // CHECK: schedule.matmul "reads"
    // CHECK: schedule.launch "comes and goes" {{.*}} @sum
    // CHECK: schedule.matmul "last"
    schedule.list forward {
      %v16 = schedule.view %p at 0 : memref<2048xi8> to memref<8x64xf32, strided<[64, 1]>>
      %v17 = schedule.view %a at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      %v18 = schedule.view %a at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      schedule.launch "overwritten" flops 512 bytes 2560 @sum items 1 outputs 1 (%v16, %v17, %v18) {transformer.layer = 1 : i64} : memref<8x64xf32, strided<[64, 1]>>, memref<64xf32, strided<[1]>>, memref<64xf32, strided<[1]>>
      %v19 = schedule.view %x at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v20 = schedule.view %y at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      schedule.matmul "beside" flops 1024 bytes 768 no %v19, %v19 to %v20 : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v21 = schedule.view %x at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v22 = schedule.view %p at 0 : memref<2048xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      schedule.matmul "overwrites" flops 1024 bytes 768 no %v21, %v21 to %v22 : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v23 = schedule.view %q at 0 : memref<2048xi8> to memref<8x64xf32, strided<[64, 1]>>
      %v24 = schedule.view %b at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      %v25 = schedule.view %b at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      schedule.launch "is read" flops 512 bytes 2560 @sum items 1 outputs 1 (%v23, %v24, %v25) {transformer.layer = 1 : i64} : memref<8x64xf32, strided<[64, 1]>>, memref<64xf32, strided<[1]>>, memref<64xf32, strided<[1]>>
      %v26 = schedule.view %x at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v27 = schedule.view %y at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      schedule.matmul "still beside" flops 1024 bytes 768 no %v26, %v26 to %v27 : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v28 = schedule.view %b at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v29 = schedule.view %y at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      schedule.matmul "reads" flops 1024 bytes 768 no %v28, %v28 to %v29 : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v30 = schedule.view %q at 0 : memref<2048xi8> to memref<8x64xf32, strided<[64, 1]>>
      %v31 = schedule.view %b at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      %v32 = schedule.view %x at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
      schedule.launch "comes and goes" flops 512 bytes 2560 @sum items 1 outputs 1 (%v30, %v31, %v32) {transformer.layer = 1 : i64} : memref<8x64xf32, strided<[64, 1]>>, memref<64xf32, strided<[1]>>, memref<64xf32, strided<[1]>>
      %v33 = schedule.view %y at 0 : memref<256xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      %v34 = schedule.view %p2 at 0 : memref<2048xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
      schedule.matmul "last" flops 1024 bytes 768 no %v33, %v33 to %v34 : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
    }
    schedule.list update {
    }
  }
  func.func private @sum(%p: !p, %g: !g) -> !g attributes {schedule.strides = [array<i64: 64, 1>, array<i64: 1>, array<i64: 1>]} {
    %y = transformer.fused rows <> cols <e> ins(%p, %g : !p, !g) -> !g {
    ^bb0(%a: !p, %b: !g):
      %s = transformer.reduce add %a over <chunk> : !p -> !g
      %z = transformer.map ins(%s, %b : !g, !g) -> !g {
      ^bb0(%e: f32, %f: f32):
        %0 = arith.addf %e, %f : f32
        transformer.yield %0 : f32
      }
      transformer.yield %z : !g
    }
    return %y : !g
  }
}
