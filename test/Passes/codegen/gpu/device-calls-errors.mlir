// RUN: meshwork-opt %s -codegen-emit-gpu-kernels -verify-diagnostics
// What the CPU's runtime refuses has no kernel either; all of it is reported.
schedule.program @rank arena 65536 {
  %0 = schedule.buffer "a" activations persistent at 0 : memref<16384xi8>
  %1 = schedule.buffer "b" activations persistent at 16384 : memref<32768xi8>
  schedule.list forward {
    %table = schedule.view %0 at 0 : memref<16384xi8> to memref<16x8xf32, strided<[16, 2]>>
    %ids = schedule.view %1 at 0 : memref<32768xi8> to memref<4xi32, strided<[1]>>
    %out = schedule.view %1 at 64 : memref<32768xi8> to memref<4x8xf32, strided<[8, 1]>>
    // expected-error @+1 {{expected dense rows}}
    schedule.embedding "x" flops 0 bytes 0 %table, %ids to %out : memref<16x8xf32, strided<[16, 2]>>, memref<4xi32, strided<[1]>> to memref<4x8xf32, strided<[8, 1]>>
    %dense = schedule.view %0 at 0 : memref<16384xi8> to memref<16x8xf32, strided<[8, 1]>>
    %sparse = schedule.view %1 at 0 : memref<32768xi8> to memref<4xi32, strided<[3]>>
    // expected-error @+1 {{expected dense i32}}
    schedule.embedding_grad "x" flops 0 bytes 0 no %sparse, %out to %dense : memref<4xi32, strided<[3]>>, memref<4x8xf32, strided<[8, 1]>> to memref<16x8xf32, strided<[8, 1]>>

    %q = schedule.view %0 at 0 : memref<16384xi8> to memref<1x2x1x512xf32, strided<[1024, 512, 512, 1]>>
    %lse = schedule.view %1 at 0 : memref<32768xi8> to memref<1x1x2xf32, strided<[2, 2, 1]>>
    %o = schedule.view %1 at 64 : memref<32768xi8> to memref<1x2x1x512xf32, strided<[1024, 512, 512, 1]>>
    // expected-error @+1 {{has heads of 512 elements, expected at most 256 on a GPU}}
    schedule.attention "x" flops 0 bytes 0 %q, %q, %q to %o, %lse causal scale 1.0 : memref<1x2x1x512xf32, strided<[1024, 512, 512, 1]>>, memref<1x2x1x512xf32, strided<[1024, 512, 512, 1]>>, memref<1x2x1x512xf32, strided<[1024, 512, 512, 1]>> to memref<1x2x1x512xf32, strided<[1024, 512, 512, 1]>>, memref<1x1x2xf32, strided<[2, 2, 1]>>

    %b = schedule.view %0 at 0 : memref<16384xi8> to memref<1x2x1x8xbf16, strided<[16, 8, 8, 1]>>
    %p = schedule.view %0 at 64 : memref<16384xi8> to memref<2xi32, strided<[1]>>
    %l = schedule.view %1 at 0 : memref<32768xi8> to memref<1x1x2xf32, strided<[2, 2, 1]>>
    %narrow = schedule.view %1 at 64 : memref<32768xi8> to memref<1x2x1x8xbf16, strided<[16, 8, 8, 1]>>
    %wide = schedule.view %1 at 128 : memref<32768xi8> to memref<1x2x1x8xf32, strided<[16, 8, 8, 1]>>
    // expected-error @+1 {{has results of 'f32' and 'bf16', expected one type on a GPU}}
    schedule.attention_grad "x" flops 0 bytes 0 %b, %b, %b, %b, %l, %b positions %p : memref<2xi32, strided<[1]>> keys %p : memref<2xi32, strided<[1]>> to %wide, %wide, %narrow causal scale 1.0 keys 4 : memref<1x2x1x8xbf16, strided<[16, 8, 8, 1]>>, memref<1x2x1x8xbf16, strided<[16, 8, 8, 1]>>, memref<1x2x1x8xbf16, strided<[16, 8, 8, 1]>>, memref<1x2x1x8xbf16, strided<[16, 8, 8, 1]>>, memref<1x1x2xf32, strided<[2, 2, 1]>>, memref<1x2x1x8xbf16, strided<[16, 8, 8, 1]>> to memref<1x2x1x8xf32, strided<[16, 8, 8, 1]>>, memref<1x2x1x8xf32, strided<[16, 8, 8, 1]>>, memref<1x2x1x8xbf16, strided<[16, 8, 8, 1]>>

    %many = schedule.view %0 at 0 : memref<16384xi8> to memref<2x1024xi32, strided<[1024, 1]>>
    %slots = schedule.view %1 at 64 : memref<32768xi8> to memref<2x2xi32, strided<[2, 1]>>
    %ranks = schedule.view %1 at 128 : memref<32768xi8> to memref<2x2xi32, strided<[2, 1]>>
    %places = schedule.view %1 at 192 : memref<32768xi8> to memref<2x2xi32, strided<[2, 1]>>
    %last = schedule.view %1 at 256 : memref<32768xi8> to memref<i32, strided<[]>>
    // expected-error @+1 {{has 1024 choices of a token, expected at most 1023 on a GPU}}
    schedule.assign_slots "x" flops 0 bytes 0 %many experts 1 most 2 to %slots, %ranks, %places, %last : memref<2x1024xi32, strided<[1024, 1]>> to memref<2x2xi32, strided<[2, 1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<i32, strided<[]>>
  }
}
