// RUN: meshwork-opt %s | meshwork-opt | FileCheck %s
// RUN: meshwork-opt %s -mlir-print-op-generic | meshwork-opt | FileCheck %s

// One of each op; what each does is in include/meshwork/Plan/Plan.fbs.
// CHECK: schedule.program @rank
schedule.program @rank {
  // CHECK: schedule.buffer "w" weights persistent : memref<256xi8>
  %w = schedule.buffer "w" weights persistent : memref<256xi8>
  %g = schedule.buffer "g" gradients persistent : memref<256xi8>
  %ids = schedule.buffer "ids" input persistent : memref<32xi8>
  %loss = schedule.buffer "loss" results persistent : memref<4xi8>
  %one = schedule.buffer "one" activations : memref<1024xi8>
  %two = schedule.buffer "two" activations : memref<1024xi8>
  %three = schedule.buffer "three" activations : memref<1024xi8>
  %pw = schedule.view %w at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
  // CHECK: schedule.view %{{.*}} at 0 shifted [#schedule.shift<["dp"], 128>]
  %half = schedule.view %w at 0 shifted [#schedule.shift<["dp"], 128>] : memref<256xi8> to memref<4x8xf32, strided<[8, 1]>>
  // CHECK: schedule.parameter "w" [64] of [8, 8] #transformer.init<constant, 1.000000e+00>
  // CHECK-SAME: [#schedule.state<"weight", weight>, #schedule.state<"squares", optimizer initially 5.000000e-01 : f32 over #mesh.sharding<[{"dp"}, {}]>>](
  schedule.parameter "w" [64] of [8, 8] #transformer.init<constant, 1.0>
    [#schedule.state<"weight", weight>, #schedule.state<"squares", optimizer initially 0.5 : f32 over #mesh.sharding<[{"dp"}, {}]>>] (%pw, %half)
    : memref<8x8xf32, strided<[8, 1]>>, memref<4x8xf32, strided<[8, 1]>>
  %tokens = schedule.view %ids at 0 : memref<32xi8> to memref<1x8xi32, strided<[8, 1]>>
  // CHECK: schedule.input{{ +}}tokens
  schedule.input tokens %tokens : memref<1x8xi32, strided<[8, 1]>>
  %positions = schedule.view %ids at 0 : memref<32xi8> to memref<8xi32, strided<[1]>>
  // CHECK: schedule.input{{ +}}positions %{{.*}} over {"dp" zigzag} of 16
  schedule.input positions %positions over {"dp" zigzag} of 16 : memref<8xi32, strided<[1]>>
  %l = schedule.view %loss at 0 : memref<4xi8> to memref<f32, strided<[]>>
  // CHECK: schedule.input{{ +}}bias_correction %{{.*}} base 5.000000e-01
  schedule.input bias_correction %l base 0.5 : memref<f32, strided<[]>>
  // CHECK: schedule.result{{ +}}loss
  schedule.result loss %l : memref<f32, strided<[]>>
  // CHECK: schedule.list{{ +}}once
  schedule.list once {
    %c = schedule.view %one at 0 : memref<1024xi8> to memref<8x4xf32, strided<[4, 1]>>
    %s = schedule.view %two at 0 : memref<1024xi8> to memref<8x4xf32, strided<[4, 1]>>
    // CHECK: schedule.rotary_table "table" flops 0 bytes 256 [1.000000e+00, 5.000000e-01] scale 1.000000e+00 to
    schedule.rotary_table "table" flops 0 bytes 256 [1.0, 0.5] scale 1.0 to %c, %s : memref<8x4xf32, strided<[4, 1]>>, memref<8x4xf32, strided<[4, 1]>>
    %p = schedule.view %ids at 0 : memref<32xi8> to memref<8xi32, strided<[1]>>
    // CHECK: schedule.rotary_table {{.*}} of %{{.*}} : memref<8xi32, strided<[1]>> to
    schedule.rotary_table "table" flops 0 bytes 288 [1.0, 0.5] scale 1.0 of %p : memref<8xi32, strided<[1]>> to %c, %s : memref<8x4xf32, strided<[4, 1]>>, memref<8x4xf32, strided<[4, 1]>>
  }
  schedule.list step {
    %z = schedule.view %g at 0 : memref<256xi8> to memref<64xf32, strided<[1]>>
    // CHECK: schedule.fill "zero" flops 0 bytes 256 0.000000e+00 to
    schedule.fill "zero" flops 0 bytes 256 0.0 to %z : memref<64xf32, strided<[1]>>
  }
  schedule.list forward {
    %t = schedule.view %w at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
    %i = schedule.view %ids at 0 : memref<32xi8> to memref<1x8xi32, strided<[8, 1]>>
    %e = schedule.view %one at 0 : memref<1024xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
    %d = schedule.view %g at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
    // CHECK: schedule.embedding "rows"
    schedule.embedding "rows" flops 0 bytes 544 %t, %i to %e : memref<8x8xf32, strided<[8, 1]>>, memref<1x8xi32, strided<[8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
    // CHECK: schedule.embedding_grad "rows" flops 0 bytes 544{{ +}}after_first
    schedule.embedding_grad "rows" flops 0 bytes 544 after_first %i, %e to %d : memref<1x8xi32, strided<[8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<8x8xf32, strided<[8, 1]>>
    %q = schedule.view %one at 0 : memref<1024xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
    %k = schedule.view %one at 256 : memref<1024xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
    %v = schedule.view %one at 512 : memref<1024xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
    %o = schedule.view %two at 0 : memref<1024xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
    %dq = schedule.view %two at 256 : memref<1024xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
    %dk = schedule.view %two at 512 : memref<1024xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
    %dv = schedule.view %two at 768 : memref<1024xi8> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
    %lse = schedule.view %one at 768 : memref<1024xi8> to memref<1x2x8xf32, strided<[16, 8, 1]>>
    // CHECK: schedule.attention "core" {{.*}} causal scale 5.000000e-01 :
    schedule.attention "core" flops 1024 bytes 1088 %q, %k, %v to %o, %lse causal scale 5.0e-01 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>
    // CHECK: schedule.attention_grad "core"
    schedule.attention_grad "core" flops 2048 bytes 2112 %q, %k, %v, %o, %lse, %o to %dq, %dk, %dv causal scale 5.0e-01 : memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x2x8xf32, strided<[16, 8, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>> to memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>, memref<1x8x2x4xf32, strided<[64, 8, 4, 1]>>
    %a = schedule.view %two at 0 : memref<1024xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
    %x = schedule.view %three at 0 : memref<1024xi8> to memref<1x8x8xf32, strided<[64, 8, 1]>>
    %first = schedule.view %ids at 0 : memref<32xi8> to memref<i32, strided<[]>>
    %scores = schedule.view %two at 0 : memref<1024xi8> to memref<8x8xf32, strided<[8, 1]>>
    %choices = schedule.view %three at 0 : memref<1024xi8> to memref<8x2xi32, strided<[2, 1]>>
    // CHECK: schedule.top_k "choices" flops 0 bytes 320 %{{[a-z0-9_]+}} to %
    schedule.top_k "choices" flops 0 bytes 320 %scores to %choices : memref<8x8xf32, strided<[8, 1]>> to memref<8x2xi32, strided<[2, 1]>>
    // CHECK: schedule.copy_block "part" flops 0 bytes 512 dim 1
    schedule.copy_block "part" flops 0 bytes 512 dim 1 %a from %first to %x : memref<1x8x8xf32, strided<[64, 8, 1]>> from memref<i32, strided<[]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
    // CHECK: schedule.matmul "product" flops 1024 bytes 768{{ +}}yes
    schedule.matmul "product" flops 1024 bytes 768 yes %e, %e to %a : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
    // CHECK: schedule.matmul "product" flops 1024 bytes 768{{ +}}no epilogue{{ +}}gelu
    schedule.matmul "product" flops 1024 bytes 768 no epilogue gelu %e, %e aux %x : memref<1x8x8xf32, strided<[64, 8, 1]>> to %a : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>> to memref<1x8x8xf32, strided<[64, 8, 1]>>
    // CHECK: schedule.launch "kernel" flops 0 bytes 512 @k items 4 outputs 1
    schedule.launch "kernel" flops 0 bytes 512 @k items 4 outputs 1 (%e, %a) : memref<1x8x8xf32, strided<[64, 8, 1]>>, memref<1x8x8xf32, strided<[64, 8, 1]>>
    // CHECK: schedule.collective "gradients" flops 0 bytes 256 {{ *}}all_reduce{{ +}}sum channel 1 last_only over ["dp"] in backward cause "why"
    schedule.collective "gradients" flops 0 bytes 256 all_reduce sum channel 1 last_only over ["dp"] in backward cause "why" dims [0] to [0] sources [] (%d) to (%d) : memref<8x8xf32, strided<[8, 1]>> to memref<8x8xf32, strided<[8, 1]>>
    // CHECK: schedule.collective "loss" {{.*}} makes_loss over ["dp"] in update cause "w" layer 2 for "v" why "needs it" by ["zero.stage"] dims {{.*}} {transformer.layer = 2 : i64}
    schedule.collective "loss" flops 0 bytes 256 all_reduce sum makes_loss over ["dp"] in update cause "w" layer 2 for "v" why "needs it" by ["zero.stage"] dims [0] to [0] sources [] (%d) to (%d) {transformer.layer = 2 : i64} : memref<8x8xf32, strided<[8, 1]>> to memref<8x8xf32, strided<[8, 1]>>
    // CHECK: schedule.collective "sum" {{.*}} all_reduce{{ +}}sum any_order over ["dp"]
    schedule.collective "sum" flops 0 bytes 256 all_reduce sum any_order over ["dp"] in update cause "w" dims [0] to [0] sources [] (%d) to (%d) : memref<8x8xf32, strided<[8, 1]>> to memref<8x8xf32, strided<[8, 1]>>
    // CHECK: schedule.view %{{.*}} at 0 updated : memref<1024xi8> to memref<8xf32
    %new = schedule.view %one at 0 updated : memref<1024xi8> to memref<8xf32, strided<[1]>>
    %near = schedule.view %two at 0 : memref<1024xi8> to memref<8xf32, strided<[1]>>
    // CHECK: schedule.copy "fetch" flops 0 bytes 64 channel 2 %{{.*}} to %
    schedule.copy "fetch" flops 0 bytes 64 channel 2 %new to %near : memref<8xf32, strided<[1]>> to memref<8xf32, strided<[1]>>
    // CHECK: schedule.copy "at once" flops 0 bytes 64 %{{.*}} to %
    schedule.copy "at once" flops 0 bytes 64 %new to %near : memref<8xf32, strided<[1]>> to memref<8xf32, strided<[1]>>
    // CHECK: schedule.wait "gradients" flops 0 bytes 0 1 count 1(%
    schedule.wait "gradients" flops 0 bytes 0 1 count 1 (%d) : memref<8x8xf32, strided<[8, 1]>>
  }
  schedule.list backward {
    // CHECK: schedule.repeat "twice" flops 0 bytes 0 times 2 {
    schedule.repeat "twice" flops 0 bytes 0 times 2 {
      // CHECK: schedule.repeat "rows" flops 0 bytes 0 times 4 {
      schedule.repeat "rows" flops 0 bytes 0 times 4 {
        // CHECK: schedule.view %{{.*}} at 0 advancing [512, 32] : memref<1024xi8> to memref<8xf32
        %r = schedule.view %one at 0 advancing [512, 32] : memref<1024xi8> to memref<8xf32, strided<[1]>>
        schedule.fill "row" flops 0 bytes 32 0.0 to %r : memref<8xf32, strided<[1]>>
      }
    }
    %n = schedule.view %one at 0 : memref<1024xi8> to memref<1xi32, strided<[1]>>
    // CHECK: schedule.repeat "rounds" flops 0 bytes 0 times 4 counted %{{.*}} : memref<1xi32, strided<[1]>> {
    schedule.repeat "rounds" flops 0 bytes 0 times 4 counted %n : memref<1xi32, strided<[1]>> {
      // CHECK: schedule.view %{{.*}} at 0 shifted [#schedule.shift<["dp"], 256 hop 1>]
      %r = schedule.view %one at 0 shifted [#schedule.shift<["dp"], 256 hop 1>] : memref<1024xi8> to memref<8xf32, strided<[1]>>
      schedule.collective "sum" flops 0 bytes 0 all_reduce sum channel 1 over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%r) to (%r) : memref<8xf32, strided<[1]>> to memref<8xf32, strided<[1]>>
      schedule.wait "sum" flops 0 bytes 0 1 count 1 (%r) : memref<8xf32, strided<[1]>>
    }
  }
  schedule.list update {
  }  // CHECK: schedule.actions [step, 0F0, 0B0, 0F1, 0B1, update]
  schedule.actions [step, 0F0, 0B0, 0F1, 0B1, update]
}

// What a middle stage of a pipeline has beside its own lists.
// CHECK: schedule.program @stage arena 128 on_host 64
schedule.program @stage arena 128 on_host 64 {
  // CHECK: schedule.buffer "kept" optimizer persistent on_host at 0 :
  %kept = schedule.buffer "kept" optimizer persistent on_host at 0 : memref<64xi8>
  %in = schedule.buffer "in" activations : memref<64xi8>
  %out = schedule.buffer "out" activations : memref<64xi8>
  // CHECK: schedule.list{{ +}}recv stage 1 {
  schedule.list recv stage 1 {
    %x = schedule.view %in at 0 : memref<64xi8> to memref<4x4xf32, strided<[4, 1]>>
    // CHECK: schedule.receive "from stage 0" flops 0 bytes 64(%{{.*}}) along "pp" peer 0 : memref<4x4xf32, strided<[4, 1]>>
    schedule.receive "from stage 0" flops 0 bytes 64 (%x) along "pp" peer 0 : memref<4x4xf32, strided<[4, 1]>>
  }
  schedule.list forward stage 1 {
  }
  schedule.list send stage 1 {
    %x = schedule.view %in at 0 : memref<64xi8> to memref<4x4xf32, strided<[4, 1]>>
    // CHECK: schedule.send "to stage 2" flops 0 bytes 128(%{{.*}}, %{{.*}}) along "pp" peer 2 : memref
    schedule.send "to stage 2" flops 0 bytes 128 (%x, %x) along "pp" peer 2 : memref<4x4xf32, strided<[4, 1]>>, memref<4x4xf32, strided<[4, 1]>>
  }
  schedule.list recv_grad stage 1 {
    %y = schedule.view %out at 0 : memref<64xi8> to memref<16xf32, strided<[1]>>
    schedule.receive "from stage 2" flops 0 bytes 64 (%y) along "pp" peer 2 : memref<16xf32, strided<[1]>>
  }
  schedule.list input_grad stage 1 {
  }
  schedule.list weight_grad stage 1 {
  }
  schedule.list send_grad stage 1 {
    %y = schedule.view %out at 0 : memref<64xi8> to memref<16xf32, strided<[1]>>
    schedule.send "to stage 0" flops 0 bytes 64 (%y) along "pp" peer 0 : memref<16xf32, strided<[1]>>
  }
  schedule.list update {
  }
  // CHECK: schedule.actions [1RECV_F0, 1F0, 1SEND_F0, 1RECV_B0, 1I0, 1SEND_B0, 1W0, update]
  schedule.actions [1RECV_F0, 1F0, 1SEND_F0, 1RECV_B0, 1I0, 1SEND_B0, 1W0, update]
}
