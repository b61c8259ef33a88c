// Operands that not every instruction of a kind has. With roundtrip.mlir every
// operand of every instruction is there once: test/Interpreter/OperandsTest.cpp
// compares what the dialect and the plan do with each.
// RUN: meshwork-opt %s | meshwork-opt | FileCheck %s
// RUN: meshwork-opt %s -mlir-print-op-generic | meshwork-opt | FileCheck %s

!ids = memref<1x8xi32, strided<[8, 1]>>
!number = memref<i32, strided<[]>>
!heads = memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
!lse = memref<1x2x8xf32, strided<[16, 8, 1]>>
!random = memref<3xi32, strided<[1]>>
!rows = memref<8xi32, strided<[1]>>
!product = memref<1x8x8xf32, strided<[64, 8, 1]>>
!row = memref<8xf32, strided<[1]>>
!scale = memref<f32, strided<[]>>
!list = memref<8xi32, strided<[1]>>
!choices = memref<4x2xi32, strided<[2, 1]>>
!begins = memref<3xi32, strided<[1]>>

schedule.program @rank {
  %small = schedule.buffer "small" input persistent : memref<64xi8>
  %b0 = schedule.buffer "b0" activations : memref<256xi8>
  %b1 = schedule.buffer "b1" activations : memref<256xi8>
  %b2 = schedule.buffer "b2" activations : memref<256xi8>
  %b3 = schedule.buffer "b3" activations : memref<256xi8>
  %b4 = schedule.buffer "b4" activations : memref<256xi8>
  %b5 = schedule.buffer "b5" activations : memref<256xi8>
  %b6 = schedule.buffer "b6" activations : memref<256xi8>
  %b7 = schedule.buffer "b7" activations : memref<256xi8>
  %experts = schedule.buffer "experts" activations : memref<1024xi8>
  %ids = schedule.view %small at 0 : memref<64xi8> to !ids
  %rows = schedule.view %small at 0 : memref<64xi8> to !rows
  %random = schedule.view %small at 32 : memref<64xi8> to !random
  %number = schedule.view %small at 44 : memref<64xi8> to !number
  %lhs_scale = schedule.view %small at 48 : memref<64xi8> to !scale
  %rhs_scale = schedule.view %small at 52 : memref<64xi8> to !scale
  schedule.list forward {
    %table = schedule.view %b0 at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
    %x = schedule.view %b1 at 0 : memref<256xi8> to !product
    %w = schedule.view %b2 at 0 : memref<256xi8> to !product
    %y = schedule.view %b3 at 0 : memref<256xi8> to !product
    %aux = schedule.view %b4 at 0 : memref<256xi8> to !product
    %row = schedule.view %b5 at 0 : memref<256xi8> to !row
    %x8 = schedule.view %b1 at 0 : memref<256xi8> to memref<1x8x8xf8E4M3FN, strided<[64, 8, 1]>>
    %w8 = schedule.view %b2 at 0 : memref<256xi8> to memref<1x8x8xf8E5M2, strided<[64, 1, 8]>>
    // CHECK: schedule.embedding "rows" {{.*}} from %
    schedule.embedding "rows" flops 0 bytes 544 %table, %ids from %number : !number to %x : memref<8x8xf32, strided<[8, 1]>>, !ids to !product
    // CHECK: schedule.embedding_grad "rows" {{.*}} from %
    schedule.embedding_grad "rows" flops 0 bytes 544 yes %ids, %x from %number : !number to %table : !ids, !product to memref<8x8xf32, strided<[8, 1]>>
    // CHECK: schedule.matmul "biased" {{.*}} bias %
    schedule.matmul "biased" flops 1024 bytes 768 after_first %x, %w bias %row : !row to %y : !product, !product to !product
    // CHECK: schedule.matmul "of 8 bits" {{.*}} scaled %
    schedule.matmul "of 8 bits" flops 1024 bytes 768 no %x8, %w8 scaled %lhs_scale, %rhs_scale : !scale, !scale to %y : memref<1x8x8xf8E4M3FN, strided<[64, 8, 1]>>, memref<1x8x8xf8E5M2, strided<[64, 1, 8]>> to !product
    // CHECK: schedule.matmul "reads aux" {{.*}} epilogue{{ +}}gelu_grad
    schedule.matmul "reads aux" flops 1024 bytes 768 no epilogue gelu_grad %x, %w aux %aux : !product to %y : !product, !product to !product
    // CHECK: schedule.matmul "writes sums" {{.*}} epilogue{{ +}}sum_lhs
    schedule.matmul "writes sums" flops 1024 bytes 768 yes epilogue sum_lhs %x, %w aux %row : !row to %y : !product, !product to !product
    // CHECK: schedule.matmul "writes sums" {{.*}} epilogue{{ +}}sum_rhs
    schedule.matmul "writes sums" flops 1024 bytes 768 no epilogue sum_rhs %x, %w aux %row : !row to %y : !product, !product to !product
    %scores = schedule.view %b6 at 0 : memref<256xi8> to memref<4x8xf32, strided<[8, 1]>>
    %valid = schedule.view %b6 at 128 : memref<256xi8> to memref<4xf32, strided<[1]>>
    %choices = schedule.view %b7 at 0 : memref<256xi8> to memref<4x2xi32, strided<[2, 1]>>
    // CHECK: schedule.top_k "choices" {{.*}} valid %{{.*}} groups 4 kept 2 by{{ +}}two_best to %
    schedule.top_k "choices" flops 0 bytes 176 %scores valid %valid : memref<4xf32, strided<[1]>> groups 4 kept 2 by two_best to %choices : memref<4x8xf32, strided<[8, 1]>> to memref<4x2xi32, strided<[2, 1]>>
    %sorted_order = schedule.view %experts at 0 : memref<1024xi8> to !list
    %sorted_tokens = schedule.view %experts at 32 : memref<1024xi8> to !list
    %sorted_places = schedule.view %experts at 64 : memref<1024xi8> to !choices
    %sorted_begins = schedule.view %experts at 96 : memref<1024xi8> to !begins
    %picked = schedule.view %experts at 128 : memref<1024xi8> to memref<4x2xf32, strided<[2, 1]>>
    %per_expert = schedule.view %experts at 512 : memref<1024xi8> to memref<2x8x8xf32, strided<[64, 1, 8]>>
    %some_rows = schedule.view %b0 at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
    %more_rows = schedule.view %b1 at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
    %of_tokens = schedule.view %b2 at 0 : memref<256xi8> to memref<4x8xf32, strided<[8, 1]>>
    %slots = schedule.view %experts at 768 : memref<1024xi8> to memref<4x2xi32, strided<[2, 1]>>
    %ranks = schedule.view %experts at 800 : memref<1024xi8> to !choices
    %slot_places = schedule.view %experts at 832 : memref<1024xi8> to memref<8x2xi32, strided<[2, 1]>>
    %last = schedule.view %experts at 896 : memref<1024xi8> to memref<i32, strided<[]>>
    // CHECK: schedule.assign_slots "exchange" flops 0 bytes 164 %{{[a-z0-9_]+}} experts 4 most 8 to %
    schedule.assign_slots "exchange" flops 0 bytes 164 %choices experts 4 most 8 to %slots, %ranks, %slot_places, %last : !choices to memref<4x2xi32, strided<[2, 1]>>, !choices, memref<8x2xi32, strided<[2, 1]>>, memref<i32, strided<[]>>
    // CHECK: schedule.limit_choices "limit" flops 0 bytes 64 %{{[a-z0-9_]+}} experts 4 most 1 group 2 to %
    schedule.limit_choices "limit" flops 0 bytes 64 %choices experts 4 most 1 group 2 to %ranks : !choices to !choices
    // CHECK: schedule.sort_rows "experts" {{.*}} from %{{.*}} most 8 to %
    schedule.sort_rows "experts" flops 0 bytes 144 %choices from %number : !number most 8 to %sorted_order, %sorted_tokens, %sorted_places, %sorted_begins : !choices to !list, !list, !choices, !begins
    // CHECK: schedule.sort_rows "experts" flops 0 bytes 140 %{{[a-z0-9_]+}} to %
    schedule.sort_rows "experts" flops 0 bytes 140 %choices to %sorted_order, %sorted_tokens, %sorted_places, %sorted_begins : !choices to !list, !list, !choices, !begins
    // CHECK: schedule.pick "picked"
    schedule.pick "picked" flops 0 bytes 96 %scores, %choices to %picked : memref<4x8xf32, strided<[8, 1]>>, !choices to memref<4x2xf32, strided<[2, 1]>>
    // CHECK: schedule.pick_grad "picked"
    schedule.pick_grad "picked" flops 0 bytes 192 %choices, %picked to %scores : !choices, memref<4x2xf32, strided<[2, 1]>> to memref<4x8xf32, strided<[8, 1]>>
    // CHECK: schedule.take_rows "rows"
    schedule.take_rows "rows" flops 0 bytes 416 %of_tokens, %sorted_tokens to %some_rows : memref<4x8xf32, strided<[8, 1]>>, !list to memref<8x8xf32, strided<[8, 1]>>
    // CHECK: schedule.grouped_product "up"
    schedule.grouped_product "up" flops 1024 bytes 1036 %some_rows, %per_expert, %sorted_begins to %more_rows : memref<8x8xf32, strided<[8, 1]>>, memref<2x8x8xf32, strided<[64, 1, 8]>>, !begins to memref<8x8xf32, strided<[8, 1]>>
    // CHECK: schedule.grouped_gradient "up" flops 1024 bytes 1036{{ +}}after_first
    schedule.grouped_gradient "up" flops 1024 bytes 1036 after_first %some_rows, %more_rows, %sorted_begins to %per_expert : memref<8x8xf32, strided<[8, 1]>>, memref<8x8xf32, strided<[8, 1]>>, !begins to memref<2x8x8xf32, strided<[64, 1, 8]>>
    // CHECK: schedule.combine_rows "sum"
    schedule.combine_rows "sum" flops 64 bytes 448 %more_rows, %sorted_places, %choices to %of_tokens : memref<8x8xf32, strided<[8, 1]>>, !choices, !choices to memref<4x8xf32, strided<[8, 1]>>
    // CHECK: schedule.launch "two" {{.*}} outputs 2
    schedule.launch "two" flops 0 bytes 512 @k items 4 outputs 2 (%x, %y, %aux) : !product, !product, !product
  }
  schedule.list backward {
    %q = schedule.view %b0 at 0 : memref<256xi8> to !heads
    %k = schedule.view %b1 at 0 : memref<256xi8> to !heads
    %v = schedule.view %b2 at 0 : memref<256xi8> to !heads
    %o = schedule.view %b3 at 0 : memref<256xi8> to !heads
    %lse = schedule.view %b4 at 0 : memref<256xi8> to !lse
    %dq = schedule.view %b5 at 0 : memref<256xi8> to !heads
    %dk = schedule.view %b6 at 0 : memref<256xi8> to !heads
    %dv = schedule.view %b7 at 0 : memref<256xi8> to !heads
    // CHECK: schedule.attention "core" {{.*}} documents %{{.*}} random %{{.*}} causal scale 5.000000e-01 dropout "attn" rate 5.000000e-01 heads 4 :
    schedule.attention "core" flops 1024 bytes 1088 %q, %k, %v documents %ids : !ids random %random, %number : !random, !number to %o, %lse causal scale 5.0e-01 dropout "attn" rate 0.5 heads 4 : !heads, !heads, !heads to !heads, !lse
    // CHECK: schedule.attention "core" {{.*}} positions %{{.*}} to
    schedule.attention "core" flops 1024 bytes 1088 %q, %k, %v positions %rows : !rows to %o, %lse causal scale 5.0e-01 : !heads, !heads, !heads to !heads, !lse
    // CHECK: schedule.attention "core" {{.*}} positions %{{.*}} keys %{{.*}} to {{.*}} causal scale 5.000000e-01 keys 16 :
    schedule.attention "core" flops 1024 bytes 1088 %q, %k, %v positions %rows : !rows keys %rows : !rows to %o, %lse causal scale 5.0e-01 keys 16 : !heads, !heads, !heads to !heads, !lse
    // CHECK: schedule.attention_grad "core" {{.*}} positions %{{.*}} keys %{{.*}} to {{.*}} causal scale 5.000000e-01 keys 16 :
    schedule.attention_grad "core" flops 2048 bytes 2112 %q, %k, %v, %o, %lse, %dq positions %rows : !rows keys %rows : !rows to %dq, %dk, %dv causal scale 5.0e-01 keys 16 : !heads, !heads, !heads, !heads, !lse, !heads to !heads, !heads, !heads
    // CHECK: schedule.attention_grad "core" {{.*}} positions %{{.*}} to
    schedule.attention_grad "core" flops 2048 bytes 2112 %q, %k, %v, %o, %lse, %dq positions %rows : !rows to %dq, %dk, %dv causal scale 5.0e-01 : !heads, !heads, !heads, !heads, !lse, !heads to !heads, !heads, !heads
    // CHECK: schedule.attention_grad "core" {{.*}} documents %{{.*}} random %{{.*}} heads 4 duplicated :
    schedule.attention_grad "core" flops 2048 bytes 2112 %q, %k, %v, %o, %lse, %dq documents %ids : !ids random %random, %number : !random, !number to %dq, %dk, %dv causal scale 5.0e-01 dropout "attn" rate 0.5 heads 4 duplicated : !heads, !heads, !heads, !heads, !lse, !heads to !heads, !heads, !heads
    %whole = schedule.view %b6 at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
    %part = schedule.view %b7 at 0 : memref<256xi8> to memref<4x8xf32, strided<[8, 1]>>
    %more = schedule.view %b5 at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
    %less = schedule.view %b7 at 128 : memref<256xi8> to memref<4x8xf32, strided<[8, 1]>>
    // CHECK: schedule.collective "two parts"
    schedule.collective "two parts" flops 0 bytes 256 all_gather sum over ["dp"] in forward cause "why" dims [0, 0] to [0, 0] sources [] (%part, %less) to (%whole, %more) : memref<4x8xf32, strided<[8, 1]>>, memref<4x8xf32, strided<[8, 1]>> to memref<8x8xf32, strided<[8, 1]>>, memref<8x8xf32, strided<[8, 1]>>
  }
}
