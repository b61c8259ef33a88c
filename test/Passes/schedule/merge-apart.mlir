// Which bytes of one buffer are told apart: on every rank, by the analysis that
// checks a plan.
// RUN: meshwork-opt %s -schedule-merge-launches | FileCheck %s
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
  schedule.program @rank {
    %a = schedule.buffer "a" optimizer persistent : memref<4096xi8>

    // Columns of one matrix lie between each other, and share no byte.
    // CHECK-LABEL: schedule.list{{ +}}once
    // CHECK: schedule.launch "left, and 1 more like it"
    schedule.list once {
      %left = schedule.view %a at 0 : memref<4096xi8> to memref<32x16xf32, strided<[32, 1]>>
      schedule.launch "left" flops 0 bytes 2048 @one items 1 outputs 1 (%left) : memref<32x16xf32, strided<[32, 1]>>
      %right = schedule.view %a at 64 : memref<4096xi8> to memref<32x16xf32, strided<[32, 1]>>
      schedule.launch "right" flops 0 bytes 2048 @one items 1 outputs 1 (%right) : memref<32x16xf32, strided<[32, 1]>>
    }

    // One shift moves both, so they keep their distance.
    // CHECK-LABEL: schedule.list{{ +}}step
    // CHECK: schedule.launch "first, and 1 more like it"
    schedule.list step {
      %first = schedule.view %a at 0 shifted [#schedule.shift<["tp"], 2048>] : memref<4096xi8> to memref<256xf32, strided<[1]>>
      schedule.fill "first" flops 0 bytes 1024 0.0 to %first : memref<256xf32, strided<[1]>>
      %second = schedule.view %a at 1024 shifted [#schedule.shift<["tp"], 2048>] : memref<4096xi8> to memref<256xf32, strided<[1]>>
      schedule.fill "second" flops 0 bytes 1024 0.0 to %second : memref<256xf32, strided<[1]>>
    }

    // The last rank's part is what the other one writes.
    // CHECK-LABEL: schedule.list{{ +}}forward
    // CHECK: schedule.fill "own part"
    // CHECK: schedule.fill "last part"
    // What advances stands for its whole buffer.
    // CHECK: schedule.repeat
    // CHECK: schedule.fill "row"
    // CHECK: schedule.fill "other row"
    schedule.list forward {
      %own = schedule.view %a at 0 shifted [#schedule.shift<["tp"], 2048>] : memref<4096xi8> to memref<256xf32, strided<[1]>>
      schedule.fill "own part" flops 0 bytes 1024 0.0 to %own : memref<256xf32, strided<[1]>>
      %last = schedule.view %a at 2048 : memref<4096xi8> to memref<256xf32, strided<[1]>>
      schedule.fill "last part" flops 0 bytes 1024 0.0 to %last : memref<256xf32, strided<[1]>>
      schedule.repeat "rows" flops 0 bytes 0 times 2 {
        %row = schedule.view %a at 0 advancing [1024] : memref<4096xi8> to memref<256xf32, strided<[1]>>
        schedule.fill "row" flops 0 bytes 1024 0.0 to %row : memref<256xf32, strided<[1]>>
        %other = schedule.view %a at 1024 advancing [1024] : memref<4096xi8> to memref<256xf32, strided<[1]>>
        schedule.fill "other row" flops 0 bytes 1024 0.0 to %other : memref<256xf32, strided<[1]>>
      }
    }
  }
  func.func private @one() -> tensor<32x16xf32, #transformer.dims<r, c>> attributes {schedule.strides = [array<i64: 32, 1>]} {
    %y = transformer.fused rows <> cols <r, c> -> tensor<32x16xf32, #transformer.dims<r, c>> {
      %z = transformer.map -> tensor<32x16xf32, #transformer.dims<r, c>> {
        %0 = arith.constant 1.0 : f32
        transformer.yield %0 : f32
      }
      transformer.yield %z : tensor<32x16xf32, #transformer.dims<r, c>>
    }
    return %y : tensor<32x16xf32, #transformer.dims<r, c>>
  }
}
