// RUN: meshwork-opt %s -schedule-lower="float8-unit=16" -verify-diagnostics
// RUN: meshwork-opt %s -schedule-lower | FileCheck %s

// CHECK: schedule.matmul "contract" {{.*}} scaled %{{.*}}, %{{.*}} : memref<f32{{.*}} to memref<1x16x24xf32
#te = #transformer.dims<sequence, embed>
#fe = #transformer.dims<ffn, embed>
#tf = #transformer.dims<sequence, ffn>
!ids = tensor<2x4xi32, #transformer.dims<batch, sequence>>
module {
  func.func @microbatch(%tokens: !ids, %targets: !ids) {
    %x:2 = transformer.fused rows <> cols #te -> tensor<16x32xf8E4M3FN, #te>, tensor<16x32xf8E4M3FN, #te> {
      %q:2 = transformer.map -> tensor<16x32xf8E4M3FN, #te>, tensor<16x32xf8E4M3FN, #te> {
        %one = arith.constant 1.0 : f32
        transformer.yield %one, %one : f32, f32
      }
      transformer.yield %q#0, %q#1 : tensor<16x32xf8E4M3FN, #te>, tensor<16x32xf8E4M3FN, #te>
    }
    %w = transformer.fused rows <> cols #fe -> tensor<24x32xf8E4M3FN, #fe> {
      %q = transformer.map -> tensor<24x32xf8E4M3FN, #fe> {
        %one = arith.constant 1.0 : f32
        transformer.yield %one : f32
      }
      transformer.yield %q : tensor<24x32xf8E4M3FN, #fe>
    }
    %s = transformer.fused rows <> cols <> -> tensor<f32> {
      %q = transformer.map -> tensor<f32> {
        %one = arith.constant 1.0 : f32
        transformer.yield %one : f32
      }
      transformer.yield %q : tensor<f32>
    }
    // expected-error@+1 {{product 'contract' of 16 x 32 by 24 on a rank has FP8 operands, expected multiples of 16; split other dims, or set precision.matmul to "compute"}}
    %y = transformer.contract "te,fe->tf" %x#0, %w scaled %s, %s : tensor<f32>, tensor<f32> : tensor<16x32xf8E4M3FN, #te>, tensor<24x32xf8E4M3FN, #fe> -> tensor<16x24xf32, #tf>
    return
  }
  func.func @update() {
    return
  }
}
