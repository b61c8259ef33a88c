// RUN: meshwork-opt %s -schedule-lower="row-bytes=128" | FileCheck %s
// RUN: meshwork-opt %s -schedule-lower | FileCheck %s --check-prefix=DENSE

// Rows of 7 values that a product reads or writes begin at multiples of 32
// elements. Other rows stay dense: rows of state, rows that no product sees, rows
// of 8 values (they are aligned anyway), and rows without a loop of their own.
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#bsv = #transformer.dims<batch, sequence, vocab>
#ve = #transformer.dims<vocab, embed>
#ehd = #transformer.dims<embed, heads, head_dim>
#bshd = #transformer.dims<batch, sequence, heads, head_dim>
!tokens = tensor<2x4xi32, #bs>
!x = tensor<2x4x8xf32, #bse>
!w = tensor<7x8xf32, #ve>
!y = tensor<2x4x7xf32, #bsv>
!p = tensor<8x3x5xf32, #ehd>
!h = tensor<2x4x3x5xf32, #bshd>

// CHECK-DAG: schedule.buffer "w (weight)" weights persistent : memref<224xi8>
// CHECK-DAG: schedule.buffer {{.*}} activations : memref<1024xi8>
// CHECK: schedule.matmul "w" {{.*}} memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x7xf32, strided<[56, 1, 8]>> to memref<1x8x7xf32, strided<[256, 32, 1]>>
// CHECK: schedule.launch
// CHECK: schedule.matmul "w" {{.*}} memref<1x8x7xf32, strided<[256, 32, 1]>>, memref<1x7x8xf32, strided<[56, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
// CHECK: schedule.matmul "p" {{.*}} to memref<1x8x15xf32, strided<[120, 15, 1]>>
// CHECK: schedule.strides = [array<i64: 128, 32, 1>, array<i64: 128, 32, 1>]
// DENSE: schedule.matmul "w" {{.*}} to memref<1x8x7xf32, strided<[56, 7, 1]>>
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %t = transformer.parameter "t" init <constant, 1.0> : tensor<16x8xf32, #ve>
    %w = transformer.parameter "w" init <constant, 1.0> : !w
    %p = transformer.parameter "p" init <constant, 1.0> : !p
    %x = transformer.embedding %t, %tokens : tensor<16x8xf32, #ve>, !tokens -> !x
    %y = transformer.contract "bse,ve->bsv" %x, %w : !x, !w -> !y
    %a = transformer.fused rows #bs cols <vocab> ins(%y : !y) -> !y {
    ^bb0(%i: !y):
      %o = transformer.map ins(%i : !y) -> !y {
      ^bb0(%e: f32):
        %s = arith.addf %e, %e : f32
        transformer.yield %s : f32
      }
      transformer.yield %o : !y
    }
    %z = transformer.contract "bsv,ve->bse" %a, %w : !y, !w -> !x
    %h = transformer.contract "bse,ehd->bshd" %z, %p : !x, !p -> !h
    return
  }
  func.func @update() {
    return
  }
}
