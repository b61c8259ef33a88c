// RUN: meshwork-opt %s -codegen-emit-cuda-code=arch=sm_80 -o /dev/null | FileCheck %s
// RUN: meshwork-opt %s -codegen-emit-cuda-code=arch=sm_90a -o /dev/null | FileCheck %s
// Shapes and bodies are those of the example models.

#batch_sequence = #transformer.dims<batch, sequence>
#batch_sequence_embed = #transformer.dims<batch, sequence, embed>
#batch_sequence_ffn = #transformer.dims<batch, sequence, ffn>
#batch_sequence_heads = #transformer.dims<batch, sequence, heads>
#batch_sequence_heads_head_dim = #transformer.dims<batch, sequence, heads, head_dim>
#batch_sequence_qkv_heads_head_dim = #transformer.dims<batch, sequence, qkv, heads, head_dim>
#batch_sequence_vocab = #transformer.dims<batch, sequence, vocab>
#chunk_embed = #transformer.dims<chunk, embed>
#chunk_qkv_heads_head_dim = #transformer.dims<chunk, qkv, heads, head_dim>
#embed = #transformer.dims<embed>
#ffn_embed = #transformer.dims<ffn, embed>
#head_dim = #transformer.dims<head_dim>
#qkv_heads_head_dim = #transformer.dims<qkv, heads, head_dim>
#sequence_head_dim = #transformer.dims<sequence, head_dim>
#vocab = #transformer.dims<vocab>

// Elements on their own: 8 of bf16 a thread, 16 bytes an access, nothing loaded twice.
// CHECK-LABEL: .entry kernel_0(
// CHECK: .maxntid 256, 1, 1
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-8: ex2.approx.ftz.f32
// CHECK-COUNT-4: cvt.rn.bf16x2.f32
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
// CHECK: ret;
func.func @swiglu(%arg0: tensor<8x256x1024xbf16, #batch_sequence_ffn>, %arg1: tensor<8x256x1024xbf16, #batch_sequence_ffn>) -> tensor<8x256x1024xbf16, #batch_sequence_ffn> {
  %0 = transformer.fused rows <> cols #batch_sequence_ffn ins(%arg0, %arg1 : tensor<8x256x1024xbf16, #batch_sequence_ffn>, tensor<8x256x1024xbf16, #batch_sequence_ffn>) -> tensor<8x256x1024xbf16, #batch_sequence_ffn> {
  ^bb0(%arg2: tensor<8x256x1024xbf16, #batch_sequence_ffn>, %arg3: tensor<8x256x1024xbf16, #batch_sequence_ffn>):
    %1 = transformer.map ins(%arg3 : tensor<8x256x1024xbf16, #batch_sequence_ffn>) -> tensor<8x256x1024xbf16, #batch_sequence_ffn> {
    ^bb0(%arg4: f32):
      %cst = arith.constant 1.000000e+00 : f32
      %3 = arith.negf %arg4 : f32
      %4 = math.exp %3 : f32
      %5 = arith.addf %4, %cst : f32
      %6 = arith.divf %arg4, %5 : f32
      transformer.yield %6 : f32
    }
    %2 = transformer.map ins(%1, %arg2 : tensor<8x256x1024xbf16, #batch_sequence_ffn>, tensor<8x256x1024xbf16, #batch_sequence_ffn>) -> tensor<8x256x1024xbf16, #batch_sequence_ffn> {
    ^bb0(%arg4: f32, %arg5: f32):
      %3 = arith.mulf %arg4, %arg5 : f32
      transformer.yield %3 : f32
    }
    transformer.yield %2 : tensor<8x256x1024xbf16, #batch_sequence_ffn>
  }
  return %0 : tensor<8x256x1024xbf16, #batch_sequence_ffn>
}

// A norm: a row a warp, held in registers (two vectors of x and of the weight), five
// shuffles, neither shared memory nor a barrier.
// CHECK-LABEL: .entry kernel_1(
// CHECK: .maxntid 128, 1, 1
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-5: shfl.sync.bfly.b32
// CHECK-NOT: {{bar.sync|shared}}
// CHECK: rsqrt.approx.f32
// CHECK-COUNT-2: st.global.v4.b32
// CHECK-NOT: st.global
// CHECK: ret;
func.func @rms_norm(%arg0: tensor<384xbf16, #embed>, %arg1: tensor<8x256x384xbf16, #batch_sequence_embed>) -> tensor<8x256x384xbf16, #batch_sequence_embed> {
  %0 = transformer.fused rows #batch_sequence cols #embed ins(%arg0, %arg1 : tensor<384xbf16, #embed>, tensor<8x256x384xbf16, #batch_sequence_embed>) -> tensor<8x256x384xbf16, #batch_sequence_embed> {
  ^bb0(%arg2: tensor<384xbf16, #embed>, %arg3: tensor<8x256x384xbf16, #batch_sequence_embed>):
    %1 = transformer.map ins(%arg3 : tensor<8x256x384xbf16, #batch_sequence_embed>) -> tensor<8x256x384xbf16, #batch_sequence_embed> {
    ^bb0(%arg4: f32):
      %4 = arith.mulf %arg4, %arg4 : f32
      transformer.yield %4 : f32
    }
    %2 = transformer.reduce add %1 over #embed : tensor<8x256x384xbf16, #batch_sequence_embed> -> tensor<8x256xf32, #batch_sequence>
    %3 = transformer.map ins(%arg3, %2, %arg2 : tensor<8x256x384xbf16, #batch_sequence_embed>, tensor<8x256xf32, #batch_sequence>, tensor<384xbf16, #embed>) -> tensor<8x256x384xbf16, #batch_sequence_embed> {
    ^bb0(%arg4: f32, %arg5: f32, %arg6: f32):
      %cst = arith.constant 9.99999974E-6 : f32
      %cst_0 = arith.constant 0.00260416674 : f32
      %4 = arith.mulf %arg5, %cst_0 : f32
      %5 = arith.addf %4, %cst : f32
      %6 = math.rsqrt %5 : f32
      %7 = arith.mulf %arg4, %6 : f32
      %8 = arith.mulf %7, %arg6 : f32
      transformer.yield %8 : f32
    }
    transformer.yield %3 : tensor<8x256x384xbf16, #batch_sequence_embed>
  }
  return %0 : tensor<8x256x384xbf16, #batch_sequence_embed>
}

// Its gradient: 16 rows at once, each thread adds the weight's gradient of its columns up
// over a chunk's rows, then shared memory adds the 16 up. The weight is loaded once, before the rows.
// CHECK-LABEL: .entry kernel_2(
// CHECK: .maxntid 512, 1, 1
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK: $L__BB
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-10: shfl.sync.bfly.b32
// CHECK: bra
// CHECK: bar.sync
// CHECK-COUNT-4: st.shared.v4.b32
// CHECK: bar.sync
// CHECK-COUNT-60: ld.shared.v4.b32
// CHECK: ret;
func.func @rms_norm_gradient(%arg0: tensor<8x256x384xbf16, #batch_sequence_embed>, %arg1: tensor<384xbf16, #embed>, %arg2: tensor<8x256x384xbf16, #batch_sequence_embed>) -> (tensor<32x384xf32, #chunk_embed>, tensor<8x256x384xbf16, #batch_sequence_embed>) {
  %0:2 = transformer.fused rows #batch_sequence cols #embed ins(%arg0, %arg1, %arg2 : tensor<8x256x384xbf16, #batch_sequence_embed>, tensor<384xbf16, #embed>, tensor<8x256x384xbf16, #batch_sequence_embed>) -> tensor<32x384xf32, #chunk_embed>, tensor<8x256x384xbf16, #batch_sequence_embed> {
  ^bb0(%arg3: tensor<8x256x384xbf16, #batch_sequence_embed>, %arg4: tensor<384xbf16, #embed>, %arg5: tensor<8x256x384xbf16, #batch_sequence_embed>):
    %1 = transformer.map ins(%arg5 : tensor<8x256x384xbf16, #batch_sequence_embed>) -> tensor<8x256x384xbf16, #batch_sequence_embed> {
    ^bb0(%arg6: f32):
      %9 = arith.mulf %arg6, %arg6 : f32
      transformer.yield %9 : f32
    }
    %2 = transformer.reduce add %1 over #embed : tensor<8x256x384xbf16, #batch_sequence_embed> -> tensor<8x256xf32, #batch_sequence>
    %3:3 = transformer.map ins(%arg5, %2, %arg4, %arg3 : tensor<8x256x384xbf16, #batch_sequence_embed>, tensor<8x256xf32, #batch_sequence>, tensor<384xbf16, #embed>, tensor<8x256x384xbf16, #batch_sequence_embed>) -> tensor<8x256x384xbf16, #batch_sequence_embed>, tensor<8x256x384xbf16, #batch_sequence_embed>, tensor<8x256x384xbf16, #batch_sequence_embed> {
    ^bb0(%arg6: f32, %arg7: f32, %arg8: f32, %arg9: f32):
      %cst = arith.constant -5.000000e-01 : f32
      %cst_0 = arith.constant 9.99999974E-6 : f32
      %cst_1 = arith.constant 0.00260416674 : f32
      %9 = arith.mulf %arg7, %cst_1 : f32
      %10 = arith.addf %9, %cst_0 : f32
      %11 = math.rsqrt %10 : f32
      %12 = arith.mulf %arg6, %11 : f32
      %13 = arith.mulf %arg9, %arg8 : f32
      %14 = arith.mulf %arg9, %12 : f32
      %15 = arith.mulf %13, %11 : f32
      %16 = arith.mulf %13, %arg6 : f32
      %17 = arith.mulf %16, %cst : f32
      %18 = arith.mulf %11, %11 : f32
      %19 = arith.mulf %11, %18 : f32
      %20 = arith.mulf %17, %19 : f32
      %21 = arith.mulf %20, %cst_1 : f32
      transformer.yield %15, %21, %14 : f32, f32, f32
    }
    %4 = transformer.reduce add %3#1 over #embed : tensor<8x256x384xbf16, #batch_sequence_embed> -> tensor<8x256xf32, #batch_sequence>
    %5 = transformer.reduce add %3#2 over #batch_sequence : tensor<8x256x384xbf16, #batch_sequence_embed> -> tensor<384xf32, #embed>
    %6 = transformer.map ins(%4 : tensor<8x256xf32, #batch_sequence>) -> tensor<8x256x384xbf16, #batch_sequence_embed> {
    ^bb0(%arg6: f32):
      transformer.yield %arg6 : f32
    }
    %7 = transformer.map ins(%arg5, %6 : tensor<8x256x384xbf16, #batch_sequence_embed>, tensor<8x256x384xbf16, #batch_sequence_embed>) -> tensor<8x256x384xbf16, #batch_sequence_embed> {
    ^bb0(%arg6: f32, %arg7: f32):
      %9 = arith.mulf %arg7, %arg6 : f32
      %10 = arith.addf %9, %9 : f32
      transformer.yield %10 : f32
    }
    %8 = transformer.map ins(%3#0, %7 : tensor<8x256x384xbf16, #batch_sequence_embed>, tensor<8x256x384xbf16, #batch_sequence_embed>) -> tensor<8x256x384xbf16, #batch_sequence_embed> {
    ^bb0(%arg6: f32, %arg7: f32):
      %9 = arith.addf %arg6, %arg7 : f32
      transformer.yield %9 : f32
    }
    transformer.yield %5, %8 : tensor<384xf32, #embed>, tensor<8x256x384xbf16, #batch_sequence_embed>
  }
  return %0#0, %0#1 : tensor<32x384xf32, #chunk_embed>, tensor<8x256x384xbf16, #batch_sequence_embed>
}

// Cross-entropy: a row a block. Each warp shuffles, one float a warp goes through shared
// memory, each warp shuffles again. The target's logit is loaded alone, the maximum takes
// two bf16 at once.
// CHECK-LABEL: .entry kernel_3(
// CHECK: .maxntid 768, 1, 1
// CHECK: ld.global.b16
// CHECK: ld.global.v4.b32
// CHECK-COUNT-4: max.bf16x2
// CHECK-NOT: add.rn.f32
// CHECK: max.f32
// CHECK-COUNT-5: shfl.sync.bfly.b32
// CHECK: st.shared.b32
// CHECK: bar.sync
// CHECK: ld.shared.b32
// CHECK-COUNT-5: shfl.sync.bfly.b32
// CHECK: ex2.approx.ftz.f32
// CHECK: st.global.v4.b32
// CHECK: ret;
func.func @cross_entropy(%arg0: tensor<1x256xi32, #batch_sequence>, %arg1: tensor<1x256x32000xbf16, #batch_sequence_vocab>) -> (tensor<1x256xf32, #batch_sequence>, tensor<1x256x32000xbf16, #batch_sequence_vocab>) {
  %0:2 = transformer.fused rows #batch_sequence cols #vocab ins(%arg0, %arg1 : tensor<1x256xi32, #batch_sequence>, tensor<1x256x32000xbf16, #batch_sequence_vocab>) -> tensor<1x256xf32, #batch_sequence>, tensor<1x256x32000xbf16, #batch_sequence_vocab> {
  ^bb0(%arg2: tensor<1x256xi32, #batch_sequence>, %arg3: tensor<1x256x32000xbf16, #batch_sequence_vocab>):
    %1 = transformer.reduce max %arg3 over #vocab : tensor<1x256x32000xbf16, #batch_sequence_vocab> -> tensor<1x256xf32, #batch_sequence>
    %2 = transformer.map ins(%arg3, %1 : tensor<1x256x32000xbf16, #batch_sequence_vocab>, tensor<1x256xf32, #batch_sequence>) -> tensor<1x256x32000xbf16, #batch_sequence_vocab> {
    ^bb0(%arg4: f32, %arg5: f32):
      %8 = arith.subf %arg4, %arg5 : f32
      %9 = math.exp %8 : f32
      transformer.yield %9 : f32
    }
    %3 = transformer.reduce add %2 over #vocab : tensor<1x256x32000xbf16, #batch_sequence_vocab> -> tensor<1x256xf32, #batch_sequence>
    %4 = transformer.map ins(%arg3, %arg2 : tensor<1x256x32000xbf16, #batch_sequence_vocab>, tensor<1x256xi32, #batch_sequence>) -> tensor<1x256x32000xbf16, #batch_sequence_vocab> {
    ^bb0(%arg4: f32, %arg5: i32):
      %cst = arith.constant 0.000000e+00 : f32
      %8 = transformer.index "vocab" : i32
      %9 = arith.cmpi eq, %8, %arg5 : i32
      %10 = arith.select %9, %arg4, %cst : f32
      transformer.yield %10 : f32
    }
    %5 = transformer.reduce add %4 over #vocab : tensor<1x256x32000xbf16, #batch_sequence_vocab> -> tensor<1x256xf32, #batch_sequence>
    %6 = transformer.map ins(%1, %3, %5 : tensor<1x256xf32, #batch_sequence>, tensor<1x256xf32, #batch_sequence>, tensor<1x256xf32, #batch_sequence>) -> tensor<1x256xf32, #batch_sequence> {
    ^bb0(%arg4: f32, %arg5: f32, %arg6: f32):
      %cst = arith.constant 2.44140625E-4 : f32
      %8 = math.log %arg5 : f32
      %9 = arith.addf %arg4, %8 : f32
      %10 = arith.subf %9, %arg6 : f32
      %11 = arith.mulf %10, %cst : f32
      transformer.yield %11 : f32
    }
    %7 = transformer.map ins(%arg3, %1, %3, %arg2 : tensor<1x256x32000xbf16, #batch_sequence_vocab>, tensor<1x256xf32, #batch_sequence>, tensor<1x256xf32, #batch_sequence>, tensor<1x256xi32, #batch_sequence>) -> tensor<1x256x32000xbf16, #batch_sequence_vocab> {
    ^bb0(%arg4: f32, %arg5: f32, %arg6: f32, %arg7: i32):
      %cst = arith.constant 0.000000e+00 : f32
      %cst_0 = arith.constant 2.44140625E-4 : f32
      %8 = arith.subf %arg4, %arg5 : f32
      %9 = math.exp %8 : f32
      %10 = arith.divf %cst_0, %arg6 : f32
      %11 = arith.mulf %9, %10 : f32
      %12 = transformer.index "vocab" : i32
      %13 = arith.cmpi eq, %12, %arg7 : i32
      %14 = arith.select %13, %cst_0, %cst : f32
      %15 = arith.subf %11, %14 : f32
      transformer.yield %15 : f32
    }
    transformer.yield %6, %7 : tensor<1x256xf32, #batch_sequence>, tensor<1x256x32000xbf16, #batch_sequence_vocab>
  }
  return %0#0, %0#1 : tensor<1x256xf32, #batch_sequence>, tensor<1x256x32000xbf16, #batch_sequence_vocab>
}

// Rows of an odd length begin anywhere: vectors stay aligned, and only the ends of a row are
// stored element by element. Of single elements the target's logit alone is loaded.
// CHECK-LABEL: .entry kernel_4(
// CHECK: ld.global.b16
// CHECK-NOT: ld.global.b16
// CHECK: st.global.v4.b32
// CHECK: st.global.b16
// CHECK: ret;
func.func @cross_entropy_of_odd_rows(%arg0: tensor<1x256xi32, #batch_sequence>, %arg1: tensor<1x256x50257xbf16, #batch_sequence_vocab>) -> (tensor<1x256xf32, #batch_sequence>, tensor<1x256x50257xbf16, #batch_sequence_vocab>) {
  %0:2 = transformer.fused rows #batch_sequence cols #vocab ins(%arg0, %arg1 : tensor<1x256xi32, #batch_sequence>, tensor<1x256x50257xbf16, #batch_sequence_vocab>) -> tensor<1x256xf32, #batch_sequence>, tensor<1x256x50257xbf16, #batch_sequence_vocab> {
  ^bb0(%arg2: tensor<1x256xi32, #batch_sequence>, %arg3: tensor<1x256x50257xbf16, #batch_sequence_vocab>):
    %1 = transformer.reduce max %arg3 over #vocab : tensor<1x256x50257xbf16, #batch_sequence_vocab> -> tensor<1x256xf32, #batch_sequence>
    %2 = transformer.map ins(%arg3, %1 : tensor<1x256x50257xbf16, #batch_sequence_vocab>, tensor<1x256xf32, #batch_sequence>) -> tensor<1x256x50257xbf16, #batch_sequence_vocab> {
    ^bb0(%arg4: f32, %arg5: f32):
      %8 = arith.subf %arg4, %arg5 : f32
      %9 = math.exp %8 : f32
      transformer.yield %9 : f32
    }
    %3 = transformer.reduce add %2 over #vocab : tensor<1x256x50257xbf16, #batch_sequence_vocab> -> tensor<1x256xf32, #batch_sequence>
    %4 = transformer.map ins(%arg3, %arg2 : tensor<1x256x50257xbf16, #batch_sequence_vocab>, tensor<1x256xi32, #batch_sequence>) -> tensor<1x256x50257xbf16, #batch_sequence_vocab> {
    ^bb0(%arg4: f32, %arg5: i32):
      %cst = arith.constant 0.000000e+00 : f32
      %8 = transformer.index "vocab" : i32
      %9 = arith.cmpi eq, %8, %arg5 : i32
      %10 = arith.select %9, %arg4, %cst : f32
      transformer.yield %10 : f32
    }
    %5 = transformer.reduce add %4 over #vocab : tensor<1x256x50257xbf16, #batch_sequence_vocab> -> tensor<1x256xf32, #batch_sequence>
    %6 = transformer.map ins(%1, %3, %5 : tensor<1x256xf32, #batch_sequence>, tensor<1x256xf32, #batch_sequence>, tensor<1x256xf32, #batch_sequence>) -> tensor<1x256xf32, #batch_sequence> {
    ^bb0(%arg4: f32, %arg5: f32, %arg6: f32):
      %cst = arith.constant 4.8828125E-4 : f32
      %8 = math.log %arg5 : f32
      %9 = arith.addf %arg4, %8 : f32
      %10 = arith.subf %9, %arg6 : f32
      %11 = arith.mulf %10, %cst : f32
      transformer.yield %11 : f32
    }
    %7 = transformer.map ins(%arg3, %1, %3, %arg2 : tensor<1x256x50257xbf16, #batch_sequence_vocab>, tensor<1x256xf32, #batch_sequence>, tensor<1x256xf32, #batch_sequence>, tensor<1x256xi32, #batch_sequence>) -> tensor<1x256x50257xbf16, #batch_sequence_vocab> {
    ^bb0(%arg4: f32, %arg5: f32, %arg6: f32, %arg7: i32):
      %cst = arith.constant 0.000000e+00 : f32
      %cst_0 = arith.constant 4.8828125E-4 : f32
      %8 = arith.subf %arg4, %arg5 : f32
      %9 = math.exp %8 : f32
      %10 = arith.divf %cst_0, %arg6 : f32
      %11 = arith.mulf %9, %10 : f32
      %12 = transformer.index "vocab" : i32
      %13 = arith.cmpi eq, %12, %arg7 : i32
      %14 = arith.select %13, %cst_0, %cst : f32
      %15 = arith.subf %11, %14 : f32
      transformer.yield %15 : f32
    }
    transformer.yield %6, %7 : tensor<1x256xf32, #batch_sequence>, tensor<1x256x50257xbf16, #batch_sequence_vocab>
  }
  return %0#0, %0#1 : tensor<1x256xf32, #batch_sequence>, tensor<1x256x50257xbf16, #batch_sequence_vocab>
}

// A roll: the other half of the row is another vector of it.
// CHECK-LABEL: .entry kernel_5(
// CHECK-COUNT-6: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
// CHECK: ret;
func.func @rope(%arg0: tensor<256x64xf32, #sequence_head_dim>, %arg1: tensor<256x64xf32, #sequence_head_dim>, %arg2: tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim>) -> tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim> {
  %0 = transformer.fused rows #batch_sequence_heads cols #head_dim ins(%arg0, %arg1, %arg2 : tensor<256x64xf32, #sequence_head_dim>, tensor<256x64xf32, #sequence_head_dim>, tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim>) -> tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim> {
  ^bb0(%arg3: tensor<256x64xf32, #sequence_head_dim>, %arg4: tensor<256x64xf32, #sequence_head_dim>, %arg5: tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim>):
    %1 = transformer.roll %arg5 by 32 : tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim>
    %2 = transformer.map ins(%arg5, %1, %arg4, %arg3 : tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim>, tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim>, tensor<256x64xf32, #sequence_head_dim>, tensor<256x64xf32, #sequence_head_dim>) -> tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim> {
    ^bb0(%arg6: f32, %arg7: f32, %arg8: f32, %arg9: f32):
      %3 = arith.mulf %arg6, %arg8 : f32
      %4 = arith.mulf %arg7, %arg9 : f32
      %5 = arith.addf %3, %4 : f32
      transformer.yield %5 : f32
    }
    transformer.yield %2 : tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim>
  }
  return %0 : tensor<8x256x6x64xbf16, #batch_sequence_heads_head_dim>
}

// Sums over rows: a warp's columns, eight rows at once, in one order.
// CHECK-LABEL: .entry kernel_6(
// CHECK: .maxntid 256, 1, 1
// CHECK: ld.global.v4.b32
// CHECK: add.rn.f32
// CHECK-NOT: {{atom|red}}.
// CHECK-COUNT-2: st.shared.v4.b32
// CHECK-COUNT-14: ld.shared.v4.b32
// CHECK-COUNT-2: st.global.v4.b32
// CHECK: ret;
func.func @column_sums(%arg0: tensor<4x512x3x12x64xbf16, #batch_sequence_qkv_heads_head_dim>) -> tensor<32x3x12x64xf32, #chunk_qkv_heads_head_dim> {
  %0 = transformer.fused rows #batch_sequence cols #qkv_heads_head_dim ins(%arg0 : tensor<4x512x3x12x64xbf16, #batch_sequence_qkv_heads_head_dim>) -> tensor<32x3x12x64xf32, #chunk_qkv_heads_head_dim> {
  ^bb0(%arg1: tensor<4x512x3x12x64xbf16, #batch_sequence_qkv_heads_head_dim>):
    %1 = transformer.reduce add %arg1 over #batch_sequence : tensor<4x512x3x12x64xbf16, #batch_sequence_qkv_heads_head_dim> -> tensor<3x12x64xf32, #qkv_heads_head_dim>
    transformer.yield %1 : tensor<3x12x64xf32, #qkv_heads_head_dim>
  }
  return %0 : tensor<32x3x12x64xf32, #chunk_qkv_heads_head_dim>
}

// AdamW: one pass over master weights, both moments (f32) and the gradient (bf16).
// CHECK-LABEL: .entry kernel_7(
// CHECK-COUNT-7: ld.global.v4.b32
// CHECK-NOT: ld.global.v
// CHECK: sqrt.approx.f32
// CHECK-COUNT-7: st.global.v4.b32
// CHECK-NOT: st.global
// CHECK: ret;
func.func @adamw(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<1024x384xf32, #ffn_embed>, %arg5: tensor<1024x384xf32, #ffn_embed>, %arg6: tensor<1024x384xf32, #ffn_embed>, %arg7: tensor<1024x384xbf16, #ffn_embed>) -> (tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xbf16, #ffn_embed>) {
  %0:4 = transformer.fused rows <> cols #ffn_embed ins(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xbf16, #ffn_embed>) -> tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xbf16, #ffn_embed> {
  ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>, %arg10: tensor<f32>, %arg11: tensor<f32>, %arg12: tensor<1024x384xf32, #ffn_embed>, %arg13: tensor<1024x384xf32, #ffn_embed>, %arg14: tensor<1024x384xf32, #ffn_embed>, %arg15: tensor<1024x384xbf16, #ffn_embed>):
    %1 = transformer.map ins(%arg11 : tensor<f32>) -> tensor<f32> {
    ^bb0(%arg16: f32):
      %cst = arith.constant 1.000000e+00 : f32
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %3 = arith.addf %arg16, %cst_0 : f32
      %4 = arith.divf %cst, %3 : f32
      %5 = arith.minimumf %4, %cst : f32
      transformer.yield %5 : f32
    }
    %2:4 = transformer.map ins(%arg15, %arg14, %arg13, %arg12, %1, %arg10, %arg9, %arg8 : tensor<1024x384xbf16, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xbf16, #ffn_embed> {
    ^bb0(%arg16: f32, %arg17: f32, %arg18: f32, %arg19: f32, %arg20: f32, %arg21: f32, %arg22: f32, %arg23: f32):
      %cst = arith.constant 9.99999993E-9 : f32
      %cst_0 = arith.constant 1.000000e+00 : f32
      %cst_1 = arith.constant 5.000000e-02 : f32
      %cst_2 = arith.constant 0.949999988 : f32
      %cst_3 = arith.constant 1.000000e-01 : f32
      %cst_4 = arith.constant 0.899999976 : f32
      %3 = arith.mulf %arg16, %arg20 : f32
      %4 = arith.mulf %arg18, %cst_4 : f32
      %5 = arith.mulf %3, %cst_3 : f32
      %6 = arith.addf %4, %5 : f32
      %7 = arith.mulf %arg19, %cst_2 : f32
      %8 = arith.mulf %3, %3 : f32
      %9 = arith.mulf %8, %cst_1 : f32
      %10 = arith.addf %7, %9 : f32
      %11 = arith.mulf %arg21, %cst_3 : f32
      %12 = arith.subf %cst_0, %11 : f32
      %13 = arith.mulf %arg17, %12 : f32
      %14 = math.sqrt %10 : f32
      %15 = math.sqrt %arg23 : f32
      %16 = arith.divf %14, %15 : f32
      %17 = arith.addf %16, %cst : f32
      %18 = arith.divf %arg21, %arg22 : f32
      %19 = arith.mulf %18, %6 : f32
      %20 = arith.divf %19, %17 : f32
      %21 = arith.subf %13, %20 : f32
      transformer.yield %21, %6, %10, %21 : f32, f32, f32, f32
    }
    transformer.yield %2#0, %2#1, %2#2, %2#3 : tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xbf16, #ffn_embed>
  }
  return %0#0, %0#1, %0#2, %0#3 : tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xf32, #ffn_embed>, tensor<1024x384xbf16, #ffn_embed>
}

// A cast: 16 bytes of bf16 from two times 16 of f32.
// CHECK-LABEL: .entry kernel_8(
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK: cvt.rn.bf16x2.f32
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
// CHECK: ret;
func.func @cast(%x: tensor<4096x64xf32, #batch_sequence>) -> tensor<4096x64xbf16, #batch_sequence> {
  %y = transformer.fused rows <> cols #batch_sequence ins(%x : tensor<4096x64xf32, #batch_sequence>) -> tensor<4096x64xbf16, #batch_sequence> {
  ^bb0(%a: tensor<4096x64xf32, #batch_sequence>):
    %z = transformer.map ins(%a : tensor<4096x64xf32, #batch_sequence>) -> tensor<4096x64xbf16, #batch_sequence> {
    ^bb0(%e: f32):
      transformer.yield %e : f32
    }
    transformer.yield %z : tensor<4096x64xbf16, #batch_sequence>
  }
  return %y : tensor<4096x64xbf16, #batch_sequence>
}
