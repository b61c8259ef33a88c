// RUN: meshwork-opt %s -split-input-file -schedule-lower | FileCheck %s

// Each turn reads and writes its own rows, and adds to one sum. What is shared
// is used as it lies.
#se = #transformer.dims<sequence, embed>
#sf = #transformer.dims<sequence, ffn>
#ef = #transformer.dims<embed, ffn>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
// CHECK: %[[X:.*]] = schedule.buffer "x (weight)"
// Parameters keep their order, in which weights stand in files.
// CHECK: schedule.parameter "x"
// CHECK: schedule.parameter "w"
// CHECK: schedule.list{{ +}}forward
// CHECK: schedule.matmul "w"
// CHECK: %[[SUM:.*]] = schedule.view %[[TO:.*]] at 0 : memref<512xi8> to memref<1x8x16xf32
// CHECK: schedule.matmul "contract" {{.*}} no %{{.*}} to %[[SUM]]
// CHECK: schedule.repeat "w" flops 0 bytes 0 times 3 {
// CHECK: %[[IN:.*]] = schedule.view %[[X]] at 64 advancing [64] : memref<256xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
// CHECK: %[[OUT:.*]] = schedule.view %[[Y:.*]] at 0 advancing [128] : memref<384xi8> to memref<1x2x16xf32
// CHECK: schedule.matmul "w" {{.*}} no %[[IN]], %{{.*}} to %[[OUT]]
// CHECK: schedule.view %[[X]] at 64 advancing [64] : memref<256xi8> to memref<1x8x2xf32, strided<[16, 1, 8]>>
// CHECK: schedule.view %[[Y]] at 0 advancing [128]
// CHECK: %[[AGAIN:.*]] = schedule.view %[[TO]] at 0 : memref<512xi8> to memref<1x8x16xf32
// CHECK: schedule.matmul "contract" {{.*}} yes %{{.*}} to %[[AGAIN]]
// CHECK: }
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.parameter "x" init <constant, 1.0> : tensor<8x8xf32, #se>
    %w = transformer.parameter "w" init <constant, 1.0> : tensor<8x16xf32, #ef>
    %first = transformer.slice %x dim "sequence" offset 0 : tensor<8x8xf32, #se> -> tensor<2x8xf32, #se>
    %rest = transformer.slice %x dim "sequence" offset 2 : tensor<8x8xf32, #se> -> tensor<6x8xf32, #se>
    %a = transformer.contract "se,ef->sf" %first, %w : tensor<2x8xf32, #se>, tensor<8x16xf32, #ef> -> tensor<2x16xf32, #sf>
    %sum = transformer.contract "se,sf->ef" %first, %a : tensor<2x8xf32, #se>, tensor<2x16xf32, #sf> -> tensor<8x16xf32, #ef>
    %y, %last = transformer.repeat 3 over "sequence" cut(%rest : tensor<6x8xf32, #se>) carry(%sum : tensor<8x16xf32, #ef>) share(%w : tensor<8x16xf32, #ef>)
        -> tensor<6x16xf32, #sf>, tensor<8x16xf32, #ef> {
    ^bb0(%part: tensor<2x8xf32, #se>, %before: tensor<8x16xf32, #ef>, %v: tensor<8x16xf32, #ef>):
      %b = transformer.contract "se,ef->sf" %part, %v : tensor<2x8xf32, #se>, tensor<8x16xf32, #ef> -> tensor<2x16xf32, #sf>
      %c = transformer.contract "se,sf->ef" %part, %b bias %before : tensor<8x16xf32, #ef> : tensor<2x8xf32, #se>, tensor<2x16xf32, #sf> -> tensor<8x16xf32, #ef>
      transformer.yield %b, %c : tensor<2x16xf32, #sf>, tensor<8x16xf32, #ef>
    }
    return
  }
  func.func @update() {
    return
  }
}

// -----

// A part that is not made in its place is copied there: what is yielded twice.
#s = #transformer.dims<sequence>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
// CHECK: schedule.repeat {{.*}} times 2 {
// CHECK: schedule.launch
// CHECK: schedule.copy_block "rearrange"
// CHECK: }
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.parameter "x" init <constant, 1.0> : tensor<8xf32, #s>
    %y, %z = transformer.repeat 2 over "sequence" cut(%x : tensor<8xf32, #s>) -> tensor<8xf32, #s>, tensor<8xf32, #s> {
    ^bb0(%part: tensor<4xf32, #s>):
      %twice = transformer.fused rows <> cols #s ins(%part : tensor<4xf32, #s>) -> tensor<4xf32, #s> {
      ^bb0(%i: tensor<4xf32, #s>):
        %o = transformer.map ins(%i : tensor<4xf32, #s>) -> tensor<4xf32, #s> {
        ^bb0(%e: f32):
          %t = arith.addf %e, %e : f32
          transformer.yield %t : f32
        }
        transformer.yield %o : tensor<4xf32, #s>
      }
      transformer.yield %twice, %twice : tensor<4xf32, #s>, tensor<4xf32, #s>
    }
    return
  }
  func.func @update() {
    return
  }
}
