// RUN: meshwork-opt %s -split-input-file -schedule-lower | FileCheck %s

// Rows a and c have the sum between them: the product reads a copy in which
// they lie side by side. Both products that read %x share it.
#abc = #transformer.dims<a, b, c>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
// CHECK: schedule.input {{ *}}coordinate %{{.*}} over {} of 1
// CHECK: schedule.copy_block {{.*}} : memref<2x4x3xf32, strided<[12, 1, 4]>> {{.*}} to memref<2x4x3xf32, strided<[12, 3, 1]>>
// CHECK-NOT: schedule.copy_block
// CHECK: schedule.matmul {{.*}} : memref<1x8x3xf32, strided<[24, 3, 1]>>
// CHECK-NOT: schedule.copy_block
// CHECK: schedule.matmul {{.*}} : memref<1x8x3xf32, strided<[24, 3, 1]>>
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.parameter "x" init <constant, 1.0> : tensor<2x3x4xf32, #abc>
    %y = transformer.parameter "y" init <constant, 1.0> : tensor<3x5xf32, #transformer.dims<b, d>>
    %z = transformer.contract "abc,bd->acd" %x, %y : tensor<2x3x4xf32, #abc>, tensor<3x5xf32, #transformer.dims<b, d>> -> tensor<2x4x5xf32, #transformer.dims<a, c, d>>
    %w = transformer.contract "abc,bd->acd" %x, %y : tensor<2x3x4xf32, #abc>, tensor<3x5xf32, #transformer.dims<b, d>> -> tensor<2x4x5xf32, #transformer.dims<a, c, d>>
    return
  }
  func.func @update() {
    return
  }
}

// -----

// The result has its rows apart: the product is made beside, and copied there.
#abc = #transformer.dims<a, b, c>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
// CHECK: schedule.matmul {{.*}} to memref<1x8x5xf32, strided<[40, 5, 1]>>
// CHECK: schedule.copy_block {{.*}} : memref<2x5x4xf32, strided<[20, 1, 5]>> {{.*}} to memref<2x5x4xf32, strided<[20, 4, 1]>>
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.parameter "x" init <constant, 1.0> : tensor<2x4x3xf32, #transformer.dims<a, c, b>>
    %y = transformer.parameter "y" init <constant, 1.0> : tensor<3x5xf32, #transformer.dims<b, d>>
    %z = transformer.contract "acb,bd->adc" %x, %y : tensor<2x4x3xf32, #transformer.dims<a, c, b>>, tensor<3x5xf32, #transformer.dims<b, d>> -> tensor<2x5x4xf32, #transformer.dims<a, d, c>>
    return
  }
  func.func @update() {
    return
  }
}

// -----

// One value in two places of a whole is made in one and copied to the other.
#s = #transformer.dims<sequence>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
// CHECK: schedule.launch
// CHECK: schedule.copy_block
// CHECK: schedule.copy_block
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.fused rows <> cols #s -> tensor<4xf32, #s> {
      %o = transformer.map -> tensor<4xf32, #s> {
        %one = arith.constant 1.0 : f32
        transformer.yield %one : f32
      }
      transformer.yield %o : tensor<4xf32, #s>
    }
    %z = transformer.unslice %x, %x dim "sequence" offsets [0, 4] : tensor<4xf32, #s>, tensor<4xf32, #s> -> tensor<8xf32, #s>
    return
  }
  func.func @update() {
    return
  }
}
