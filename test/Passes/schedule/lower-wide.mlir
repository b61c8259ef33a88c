// RUN: meshwork-opt %s -schedule-lower="row-bytes=128" | FileCheck %s
// RUN: meshwork-opt %s -schedule-lower | FileCheck %s --check-prefix=AS-IS

// A vocabulary of 250 is one of 256 to a GPU's products: their tensors have
// room, weights zeros in it from the start, and what a product sums is set to
// zero there. Sizes that eight divides stay, and those that would grow a lot.
#bs = #transformer.dims<batch, sequence>
#bse = #transformer.dims<batch, sequence, embed>
#bsv = #transformer.dims<batch, sequence, vocab>
#bsx = #transformer.dims<batch, sequence, extra>
#ve = #transformer.dims<vocab, embed>
#xe = #transformer.dims<extra, embed>
!tokens = tensor<2x4xi32, #bs>
!x = tensor<2x4x8xbf16, #bse>
!w = tensor<250x8xbf16, #ve>
!y = tensor<2x4x250xbf16, #bsv>
!p = tensor<9x8xbf16, #xe>
!h = tensor<2x4x9xbf16, #bsx>

// CHECK-DAG: schedule.buffer "w (weight)" weights persistent : memref<4096xi8>
// CHECK: schedule.matmul "w" {{.*}} memref<1x8x8xbf16, strided<[64, 8, 1]>>, memref<1x8x256xbf16, strided<[2000, 1, 8]>> to memref<1x8x256xbf16, strided<[2048, 256, 1]>>
// CHECK: schedule.launch
// CHECK: %[[REST:.*]] = schedule.view {{.*}} at 500 : memref<4096xi8> to memref<8x6xbf16, strided<[256, 1]>>
// CHECK: schedule.fill "zero behind rows" {{.*}} to %[[REST]]
// CHECK: schedule.matmul "w" {{.*}} memref<1x8x256xbf16, strided<[2048, 256, 1]>>, memref<1x256x8xbf16, strided<[2000, 8, 1]>> to memref<1x8x8xbf16, strided<[64, 8, 1]>>
// CHECK: schedule.matmul "p" {{.*}} to memref<1x8x9xbf16, strided<[512, 64, 1]>>
// AS-IS: schedule.matmul "w" {{.*}} to memref<1x8x250xbf16, strided<[2000, 250, 1]>>
// AS-IS-NOT: schedule.fill
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %t = transformer.parameter "t" init <constant, 1.0> : tensor<16x8xbf16, #ve>
    %w = transformer.parameter "w" init <constant, 1.0> : !w
    %p = transformer.parameter "p" init <constant, 1.0> : !p
    %x = transformer.embedding %t, %tokens : tensor<16x8xbf16, #ve>, !tokens -> !x
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
    %h = transformer.contract "bse,xe->bsx" %z, %p : !x, !p -> !h
    return
  }
  func.func @update() {
    return
  }
}
