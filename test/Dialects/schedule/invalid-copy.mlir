// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @rank {
  %a = schedule.buffer "a" optimizer persistent on_host : memref<64xi8>
  %b = schedule.buffer "b" workspace : memref<64xi8>
  %x = schedule.view %a at 0 : memref<64xi8> to memref<16xf32, strided<[1]>>
  %y = schedule.view %b at 0 : memref<64xi8> to memref<4x4xf32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.copy' op (C1) dst is f32[4,4], expected f32[16]}}
    schedule.copy "x" flops 0 bytes 128 %x to %y : memref<16xf32, strided<[1]>> to memref<4x4xf32, strided<[4, 1]>>
  }
}

// -----
schedule.program @rank {
  %a = schedule.buffer "a" optimizer persistent on_host : memref<64xi8>
  %b = schedule.buffer "b" workspace : memref<64xi8>
  %x = schedule.view %a at 0 : memref<64xi8> to memref<4x2xf32, strided<[4, 1]>>
  %y = schedule.view %b at 0 : memref<64xi8> to memref<4x2xf32, strided<[2, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.copy' op (C1) copies f32[4,2] to f32[4,2], expected both without gaps}}
    schedule.copy "x" flops 0 bytes 64 %x to %y : memref<4x2xf32, strided<[4, 1]>> to memref<4x2xf32, strided<[2, 1]>>
  }
}

// -----
schedule.program @rank {
  %a = schedule.buffer "a" workspace : memref<64xi8>
  %x = schedule.view %a at 0 : memref<64xi8> to memref<8xf32, strided<[1]>>
  %y = schedule.view %a at 32 : memref<64xi8> to memref<8xf32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.copy' op (C2) src and dst share buffer "a"}}
    schedule.copy "x" flops 0 bytes 64 %x to %y : memref<8xf32, strided<[1]>> to memref<8xf32, strided<[1]>>
  }
}

// -----
schedule.program @rank {
  %a = schedule.buffer "a" optimizer persistent on_host : memref<64xi8>
  %b = schedule.buffer "b" workspace : memref<64xi8>
  %x = schedule.view %a at 0 : memref<64xi8> to memref<16xf32, strided<[1]>>
  %y = schedule.view %b at 0 : memref<64xi8> to memref<16xf32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.copy' op (C7) channel 9, expected at most 8}}
    schedule.copy "x" flops 0 bytes 128 channel 9 %x to %y : memref<16xf32, strided<[1]>> to memref<16xf32, strided<[1]>>
  }
}
