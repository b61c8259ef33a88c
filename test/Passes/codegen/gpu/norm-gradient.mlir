// The gradient of a layer norm whose sums of a row are kept: what is left to sum
// along a row needs nothing of each other. A row of seven warps has one barrier,
// and the rows of a block take turns in shared memory; one more follows the last.
// RUN: meshwork-opt %s -codegen-emit-cuda-code=arch=sm_90a -o /dev/null | FileCheck %s
// RUN: meshwork-opt %s -codegen-emit-cuda-code=arch=sm_90a -o /dev/null | FileCheck %s --check-prefix=BARRIERS

// Five steps of two sums within a warp, three among the seven.
// CHECK: .maxntid 224, 1, 1
// CHECK-COUNT-10: shfl.sync.bfly.b32
// CHECK: st.shared.b32
// CHECK-NEXT: st.shared.b32
// CHECK: bar.sync
// CHECK-COUNT-6: shfl.sync.bfly.b32
// CHECK-NOT: shfl
// CHECK: ret;
// BARRIERS-COUNT-2: bar.sync
// BARRIERS-NOT: bar.sync
// BARRIERS: ret;
#batch_sequence = #transformer.dims<batch, sequence>
#batch_sequence_embed = #transformer.dims<batch, sequence, embed>
#chunk_embed = #transformer.dims<chunk, embed>
#embed = #transformer.dims<embed>
module {
  func.func private @layer_norm_gradient(%arg0: tensor<8x1024x1600xbf16, #batch_sequence_embed>, %arg1: tensor<1600xbf16, #embed>, %arg2: tensor<8x1024xf32, #batch_sequence>, %arg3: tensor<8x1024xf32, #batch_sequence>, %arg4: tensor<8x1024x1600xbf16, #batch_sequence_embed>, %arg5: tensor<8x1024x1600xbf16, #batch_sequence_embed>) -> (tensor<512x1600xf32, #chunk_embed>, tensor<512x1600xf32, #chunk_embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<512x1600xf32, #chunk_embed>) attributes {schedule.strides = [array<i64: 1638400, 1600, 1>, array<i64: 1>, array<i64: 1024, 1>, array<i64: 1024, 1>, array<i64: 1638400, 1600, 1>, array<i64: 1638400, 1600, 1>, array<i64: 1600, 1>, array<i64: 1600, 1>, array<i64: 1638400, 1600, 1>, array<i64: 1600, 1>]} {
    %0:4 = transformer.fused rows #batch_sequence cols #embed ins(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5 : tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<1600xbf16, #embed>, tensor<8x1024xf32, #batch_sequence>, tensor<8x1024xf32, #batch_sequence>, tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>) -> tensor<512x1600xf32, #chunk_embed>, tensor<512x1600xf32, #chunk_embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<512x1600xf32, #chunk_embed> {
    ^bb0(%arg6: tensor<8x1024x1600xbf16, #batch_sequence_embed>, %arg7: tensor<1600xbf16, #embed>, %arg8: tensor<8x1024xf32, #batch_sequence>, %arg9: tensor<8x1024xf32, #batch_sequence>, %arg10: tensor<8x1024x1600xbf16, #batch_sequence_embed>, %arg11: tensor<8x1024x1600xbf16, #batch_sequence_embed>):
      %1 = transformer.map ins(%arg10, %arg9 : tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<8x1024xf32, #batch_sequence>) -> tensor<8x1024x1600xbf16, #batch_sequence_embed> {
      ^bb0(%arg12: f32, %arg13: f32):
        %cst = arith.constant 6.250000e-04 : f32
        %15 = arith.mulf %arg13, %cst : f32
        %16 = arith.subf %arg12, %15 : f32
        transformer.yield %16 : f32
      }
      %2:3 = transformer.map ins(%1, %arg8, %arg7, %arg6 : tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<8x1024xf32, #batch_sequence>, tensor<1600xbf16, #embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>) -> tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed> {
      ^bb0(%arg12: f32, %arg13: f32, %arg14: f32, %arg15: f32):
        %cst = arith.constant -5.000000e-01 : f32
        %cst_0 = arith.constant 9.99999974E-6 : f32
        %cst_1 = arith.constant 6.250000e-04 : f32
        %15 = arith.mulf %arg13, %cst_1 : f32
        %16 = arith.addf %15, %cst_0 : f32
        %17 = math.rsqrt %16 : f32
        %18 = arith.mulf %arg12, %17 : f32
        %19 = arith.mulf %arg15, %arg14 : f32
        %20 = arith.mulf %arg15, %18 : f32
        %21 = arith.mulf %19, %17 : f32
        %22 = arith.mulf %19, %arg12 : f32
        %23 = arith.mulf %22, %cst : f32
        %24 = arith.mulf %23, %17 : f32
        %25 = arith.mulf %17, %17 : f32
        %26 = arith.mulf %24, %25 : f32
        %27 = arith.mulf %26, %cst_1 : f32
        transformer.yield %21, %27, %20 : f32, f32, f32
      }
      %3 = transformer.reduce  add %2#1 over #embed : tensor<8x1024x1600xbf16, #batch_sequence_embed> -> tensor<8x1024xf32, #batch_sequence>
      %4 = transformer.reduce  add %2#2 over #batch_sequence : tensor<8x1024x1600xbf16, #batch_sequence_embed> -> tensor<1600xf32, #embed>
      %5 = transformer.reduce  add %arg6 over #batch_sequence : tensor<8x1024x1600xbf16, #batch_sequence_embed> -> tensor<1600xf32, #embed>
      %6 = transformer.map ins(%3 : tensor<8x1024xf32, #batch_sequence>) -> tensor<8x1024x1600xbf16, #batch_sequence_embed> {
      ^bb0(%arg12: f32):
        transformer.yield %arg12 : f32
      }
      %7 = transformer.map ins(%1, %6 : tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>) -> tensor<8x1024x1600xbf16, #batch_sequence_embed> {
      ^bb0(%arg12: f32, %arg13: f32):
        %15 = arith.mulf %arg13, %arg12 : f32
        %16 = arith.addf %15, %15 : f32
        transformer.yield %16 : f32
      }
      %8 = transformer.map ins(%arg11, %7 : tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>) -> tensor<8x1024x1600xbf16, #batch_sequence_embed> {
      ^bb0(%arg12: f32, %arg13: f32):
        %15 = arith.addf %arg12, %arg13 : f32
        transformer.yield %15 : f32
      }
      %9 = transformer.map ins(%2#0 : tensor<8x1024x1600xbf16, #batch_sequence_embed>) -> tensor<8x1024x1600xbf16, #batch_sequence_embed> {
      ^bb0(%arg12: f32):
        %cst = arith.constant 6.250000e-04 : f32
        %15 = arith.negf %arg12 : f32
        %16 = arith.mulf %15, %cst : f32
        transformer.yield %16 : f32
      }
      %10 = transformer.reduce  add %9 over #embed : tensor<8x1024x1600xbf16, #batch_sequence_embed> -> tensor<8x1024xf32, #batch_sequence>
      %11 = transformer.map ins(%8, %2#0 : tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>) -> tensor<8x1024x1600xbf16, #batch_sequence_embed> {
      ^bb0(%arg12: f32, %arg13: f32):
        %15 = arith.addf %arg12, %arg13 : f32
        transformer.yield %15 : f32
      }
      %12 = transformer.map ins(%10 : tensor<8x1024xf32, #batch_sequence>) -> tensor<8x1024x1600xbf16, #batch_sequence_embed> {
      ^bb0(%arg12: f32):
        transformer.yield %arg12 : f32
      }
      %13 = transformer.map ins(%11, %12 : tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>) -> tensor<8x1024x1600xbf16, #batch_sequence_embed> {
      ^bb0(%arg12: f32, %arg13: f32):
        %15 = arith.addf %arg12, %arg13 : f32
        transformer.yield %15 : f32
      }
      %14 = transformer.reduce  add %13 over #batch_sequence : tensor<8x1024x1600xbf16, #batch_sequence_embed> -> tensor<1600xf32, #embed>
      transformer.yield %4, %5, %13, %14 : tensor<1600xf32, #embed>, tensor<1600xf32, #embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<1600xf32, #embed>
    }
    return %0#0, %0#1, %0#2, %0#3 : tensor<512x1600xf32, #chunk_embed>, tensor<512x1600xf32, #chunk_embed>, tensor<8x1024x1600xbf16, #batch_sequence_embed>, tensor<512x1600xf32, #chunk_embed>
  }
}
