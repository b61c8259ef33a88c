// RUN: meshwork-opt %s -codegen-emit-gpu-kernels | FileCheck %s

// Where documents begin is a pointer as dropout's are, null where absent; that
// they are there is a constant: a kernel without them tests nothing.
// CHECK: gpu.func @attention_bf16_64_0(
// CHECK: %[[Q:.*]] = llvm.addrspacecast %arg0
// CHECK: %[[K:.*]] = llvm.addrspacecast %arg1
// CHECK: %[[V:.*]] = llvm.addrspacecast %arg2
// CHECK: %[[DOCUMENTS:.*]] = llvm.mlir.zero
// CHECK: %[[POSITIONS:.*]] = llvm.mlir.zero
// CHECK: %[[KEYS:.*]] = llvm.mlir.zero
// CHECK: %[[RANDOM:.*]] = llvm.mlir.zero
// CHECK: %[[FIRST:.*]] = llvm.mlir.zero
// CHECK: %[[OUT:.*]] = llvm.addrspacecast %arg3
// CHECK: %[[LSE:.*]] = llvm.addrspacecast %arg4
// After sizes, strides, alignment and the causal mask: window, documents, positions, keys, dropout.
// CHECK: %33 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %34 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %35 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %36 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %37 = llvm.mlir.constant(0 : i64)
// CHECK: llvm.call @meshwork_attention_bf16_64(%[[Q]], %[[K]], %[[V]], %[[DOCUMENTS]], %[[POSITIONS]], %[[KEYS]], %[[RANDOM]], %[[FIRST]], %[[OUT]], %[[LSE]],
// CHECK: gpu.func @attention_bf16_64_1(
// CHECK: %[[DOCUMENTS:.*]] = llvm.addrspacecast %arg3
// CHECK: %[[POSITIONS:.*]] = llvm.mlir.zero
// CHECK: %[[KEYS:.*]] = llvm.mlir.zero
// CHECK: %[[RANDOM:.*]] = llvm.mlir.zero
// CHECK: %[[FIRST:.*]] = llvm.mlir.zero
// CHECK: %[[OUT:.*]] = llvm.addrspacecast %arg4
// CHECK: %33 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %34 = llvm.mlir.constant(1 : i64)
// CHECK-NEXT: %35 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %36 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %37 = llvm.mlir.constant(0 : i64)
// CHECK: llvm.call @meshwork_attention_bf16_64({{.*}}, %[[DOCUMENTS]], %[[POSITIONS]], %[[KEYS]], %[[RANDOM]], %[[FIRST]], %[[OUT]],
// CHECK: gpu.func @attention_bf16_64_2(
// CHECK: %[[DOCUMENTS:.*]] = llvm.addrspacecast %arg3
// CHECK: %[[POSITIONS:.*]] = llvm.mlir.zero
// CHECK: %[[KEYS:.*]] = llvm.mlir.zero
// CHECK: %[[RANDOM:.*]] = llvm.addrspacecast %arg4
// CHECK: %[[FIRST:.*]] = llvm.addrspacecast %arg5
// CHECK: %[[OUT:.*]] = llvm.addrspacecast %arg6
// CHECK: %33 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %34 = llvm.mlir.constant(1 : i64)
// CHECK-NEXT: %35 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %36 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %37 = llvm.mlir.constant(1 : i64)
// CHECK: llvm.call @meshwork_attention_bf16_64({{.*}}, %[[DOCUMENTS]], %[[POSITIONS]], %[[KEYS]], %[[RANDOM]], %[[FIRST]], %[[OUT]],
// A part of the keys: after the rows of queries and keys all keys of the sequence; f32 results beside bf16.
// CHECK: gpu.func @attention_bf16_64_3(
// CHECK: %[[DOCUMENTS:.*]] = llvm.mlir.zero
// CHECK: %[[POSITIONS:.*]] = llvm.addrspacecast %arg3
// CHECK: %[[KEYS:.*]] = llvm.addrspacecast %arg4
// CHECK: %[[RANDOM:.*]] = llvm.mlir.zero
// CHECK: %[[FIRST:.*]] = llvm.mlir.zero
// CHECK: %[[OUT:.*]] = llvm.addrspacecast %arg5
// CHECK: %10 = llvm.mlir.constant(40 : i64)
// CHECK-NEXT: %11 = llvm.mlir.constant(40 : i64)
// CHECK-NEXT: %12 = llvm.mlir.constant(80 : i64)
// CHECK: %30 = llvm.mlir.constant(1 : i64)
// CHECK-NEXT: %31 = llvm.mlir.constant(1 : i64)
// CHECK-NEXT: %32 = llvm.mlir.constant(1 : i64)
// CHECK-NEXT: %33 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %34 = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %35 = llvm.mlir.constant(1 : i64)
// CHECK-NEXT: %36 = llvm.mlir.constant(1 : i64)
// CHECK: llvm.call @meshwork_attention_bf16_64({{.*}}, %[[DOCUMENTS]], %[[POSITIONS]], %[[KEYS]], %[[RANDOM]], %[[FIRST]], %[[OUT]],
// The gradient reads them after its other tensors.
// CHECK: gpu.func @attention_grad_keys_bf16_64_1(
// CHECK: %[[DOCUMENTS:.*]] = llvm.addrspacecast %arg6
// CHECK: %[[POSITIONS:.*]] = llvm.mlir.zero
// CHECK: %[[KEYS:.*]] = llvm.mlir.zero
// CHECK: %[[RANDOM:.*]] = llvm.mlir.zero
// CHECK: %[[FIRST:.*]] = llvm.mlir.zero
// CHECK: %[[DQ:.*]] = llvm.addrspacecast %arg7
// CHECK: llvm.call @meshwork_attention_grad_keys_bf16_64({{.*}}, %[[DOCUMENTS]], %[[POSITIONS]], %[[KEYS]], %[[RANDOM]], %[[FIRST]], %[[DQ]],
schedule.program @rank arena 331264 {
  %b_q = schedule.buffer "b_q" activations persistent at 0 : memref<40960xi8>
  %b_k = schedule.buffer "b_k" activations persistent at 40960 : memref<20480xi8>
  %b_v = schedule.buffer "b_v" activations persistent at 61440 : memref<20480xi8>
  %b_out = schedule.buffer "b_out" activations persistent at 81920 : memref<40960xi8>
  %b_lse = schedule.buffer "b_lse" activations persistent at 122880 : memref<1280xi8>
  %b_dout = schedule.buffer "b_dout" activations persistent at 124416 : memref<40960xi8>
  %b_dq = schedule.buffer "b_dq" activations persistent at 165376 : memref<40960xi8>
  %b_dk = schedule.buffer "b_dk" activations persistent at 206336 : memref<20480xi8>
  %b_dv = schedule.buffer "b_dv" activations persistent at 226816 : memref<20480xi8>
  %b_documents = schedule.buffer "b_documents" input persistent at 247296 : memref<320xi8>
  %b_random = schedule.buffer "b_random" input persistent at 247808 : memref<12xi8>
  %b_first = schedule.buffer "b_first" input persistent at 248320 : memref<4xi8>
  %b_positions = schedule.buffer "b_positions" input persistent at 248832 : memref<160xi8>
  %b_keys = schedule.buffer "b_keys" input persistent at 249088 : memref<160xi8>
  %b_wide = schedule.buffer "b_wide" activations persistent at 249344 : memref<81920xi8>
  schedule.list forward {
    %q = schedule.view %b_q at 0 : memref<40960xi8> to memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>
    %k = schedule.view %b_k at 0 : memref<20480xi8> to memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>
    %v = schedule.view %b_v at 0 : memref<20480xi8> to memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>
    %out = schedule.view %b_out at 0 : memref<40960xi8> to memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>
    %lse = schedule.view %b_lse at 0 : memref<1280xi8> to memref<2x4x40xf32, strided<[160, 40, 1]>>
    %dout = schedule.view %b_dout at 0 : memref<40960xi8> to memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>
    %dq = schedule.view %b_dq at 0 : memref<40960xi8> to memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>
    %dk = schedule.view %b_dk at 0 : memref<20480xi8> to memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>
    %dv = schedule.view %b_dv at 0 : memref<20480xi8> to memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>
    %documents = schedule.view %b_documents at 0 : memref<320xi8> to memref<2x40xi32, strided<[40, 1]>>
    %random = schedule.view %b_random at 0 : memref<12xi8> to memref<3xi32, strided<[1]>>
    %first = schedule.view %b_first at 0 : memref<4xi8> to memref<i32, strided<[]>>
    %positions = schedule.view %b_positions at 0 : memref<160xi8> to memref<40xi32, strided<[1]>>
    %keys = schedule.view %b_keys at 0 : memref<160xi8> to memref<40xi32, strided<[1]>>
    %wide = schedule.view %b_wide at 0 : memref<81920xi8> to memref<2x40x4x64xf32, strided<[10240, 256, 64, 1]>>
    schedule.attention "joined" flops 0 bytes 0 %q, %k, %v to %out, %lse causal scale 0.125 : memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>> to memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x4x40xf32, strided<[160, 40, 1]>>
    schedule.attention "separate" flops 0 bytes 0 %q, %k, %v documents %documents : memref<2x40xi32, strided<[40, 1]>> to %out, %lse causal scale 0.125 : memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>> to memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x4x40xf32, strided<[160, 40, 1]>>
    schedule.attention "both" flops 0 bytes 0 %q, %k, %v documents %documents : memref<2x40xi32, strided<[40, 1]>> random %random, %first : memref<3xi32, strided<[1]>>, memref<i32, strided<[]>> to %out, %lse causal scale 0.125 dropout "attn" rate 0.5 : memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>> to memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x4x40xf32, strided<[160, 40, 1]>>
    schedule.attention "hop" flops 0 bytes 0 %q, %k, %v positions %positions : memref<40xi32, strided<[1]>> keys %keys : memref<40xi32, strided<[1]>> to %wide, %lse causal scale 0.125 keys 80 : memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>> to memref<2x40x4x64xf32, strided<[10240, 256, 64, 1]>>, memref<2x4x40xf32, strided<[160, 40, 1]>>
    schedule.attention_grad "joined" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout to %dq, %dk, %dv causal scale 0.125 : memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x4x40xf32, strided<[160, 40, 1]>>, memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>> to memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>
    schedule.attention_grad "separate" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout documents %documents : memref<2x40xi32, strided<[40, 1]>> to %dq, %dk, %dv causal scale 0.125 : memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x4x40xf32, strided<[160, 40, 1]>>, memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>> to memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>
    schedule.attention_grad "both" flops 0 bytes 0 %q, %k, %v, %out, %lse, %dout documents %documents : memref<2x40xi32, strided<[40, 1]>> random %random, %first : memref<3xi32, strided<[1]>>, memref<i32, strided<[]>> to %dq, %dk, %dv causal scale 0.125 dropout "attn" rate 0.5 : memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x4x40xf32, strided<[160, 40, 1]>>, memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>> to memref<2x40x4x64xbf16, strided<[10240, 256, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>, memref<2x40x2x64xbf16, strided<[5120, 128, 64, 1]>>
  }
}
