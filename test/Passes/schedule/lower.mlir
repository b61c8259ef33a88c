// RUN: meshwork-opt %s -schedule-lower | FileCheck %s

#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#ve = #transformer.dims<vocab, embed>
#ef = #transformer.dims<embed, ffn>
#bsf = #transformer.dims<batch, sequence, ffn>
!tokens = tensor<1x4xi32, #bs>
!x = tensor<1x4x8xf32, #bse>
!w = tensor<8x16xf32, #ef>
!y = tensor<1x4x16xf32, #bsf>

// CHECK: schedule.program @rank
// CHECK-DAG: %[[GRADIENT:.*]] = schedule.buffer "w (gradient)" gradients persistent : memref<512xi8>
// CHECK-DAG: schedule.buffer "w (weight)" weights persistent : memref<512xi8>
// CHECK: schedule.list{{ +}}forward
// Each kernel once; products on 3-D views; a gradient is added where it is kept,
// and set, not added, by the first microbatch.
// CHECK: schedule.embedding "t"
// An addition for each of 4 x 8 elements.
// CHECK: schedule.launch {{.*}} flops 32 {{.*}} @kernel_0 items
// CHECK: schedule.launch {{.*}} flops 32 {{.*}} @kernel_0 items
// CHECK: schedule.matmul "w" flops 1024 {{.*}} no
// CHECK-SAME: memref<1x4x8xf32, strided<[32, 8, 1]>>, memref<1x8x16xf32, strided<[128, 16, 1]>> to memref<1x4x16xf32
// CHECK: %[[VIEW:.*]] = schedule.view %[[GRADIENT]] at 0
// CHECK: schedule.matmul "w (gradient)" {{.*}} after_first {{.*}} to %[[VIEW]] : memref<1x8x4xf32, strided<[32, 1, 8]>>
// CHECK: schedule.list{{ +}}update
// CHECK: func.func private @kernel_0({{.*}}) -> {{.*}} attributes {schedule.strides = [array<i64: 32, 8, 1>, array<i64: 32, 8, 1>]}
// CHECK-NOT: func.func
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %t = transformer.parameter "t" init <constant, 1.0> : tensor<16x8xf32, #ve>
    %w = transformer.parameter "w" init <constant, 1.0> : !w
    %x = transformer.embedding %t, %tokens : tensor<16x8xf32, #ve>, !tokens -> !x
    %a = transformer.fused rows #bs cols <embed> ins(%x : !x) -> !x {
    ^bb0(%i: !x):
      %o = transformer.map ins(%i : !x) -> !x {
      ^bb0(%e: f32):
        %s = arith.addf %e, %e : f32
        transformer.yield %s : f32
      }
      transformer.yield %o : !x
    }
    %b = transformer.fused rows #bs cols <embed> ins(%a : !x) -> !x {
    ^bb0(%i: !x):
      %o = transformer.map ins(%i : !x) -> !x {
      ^bb0(%e: f32):
        %s = arith.addf %e, %e : f32
        transformer.yield %s : f32
      }
      transformer.yield %o : !x
    }
    %y = transformer.contract "bse,ef->bsf" %b, %w : !x, !w -> !y
    %dw = transformer.contract "bse,bsf->ef" %b, %y : !x, !y -> !w
    transformer.accumulate gradient "w", %dw : !w
    return
  }
  func.func @update() {
    return
  }
}
