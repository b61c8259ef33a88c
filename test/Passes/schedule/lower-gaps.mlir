// RUN: meshwork-opt %s -split-input-file -schedule-lower | FileCheck %s
// What lies with gaps between its elements, where ranks do not divide a dim.

// The rows of two samples have others between them, so a block of their columns
// is cut out of a copy.
#bse = #transformer.dims<batch, sequence, embed>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
// CHECK: schedule.copy_block "rearrange" {{.*}} : memref<{{.*}}> from {{.*}} to memref<{{.*}}>
// CHECK: schedule.copy_block "slice" {{.*}} dim 2 {{.*}} : memref<2x2x8xf32, strided<[16, 8, 1]>> {{.*}} to memref<2x2x3xf32, strided<[6, 3, 1]>>
// CHECK-NOT: schedule.copy_block
module attributes {mesh.mesh = #mesh.mesh<"x"=3>} {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.parameter "x" init <constant, 1.0> : tensor<2x4x8xf32, #bse>
    %s = transformer.slice %x dim "sequence" offset 1 : tensor<2x4x8xf32, #bse> -> tensor<2x2x8xf32, #bse>
    %part = mesh.slice %s dim 2 over ["x"] cause "a" : tensor<2x2x8xf32, #bse> -> tensor<2x2x3xf32, #bse>
    return
  }
  func.func @update() {
    return
  }
}

// -----

// A part of a whole with gaps is cut beside it, and copied there. What no part
// covers is zero: rows apart are filled as such.
#bse = #transformer.dims<batch, sequence, embed>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
// CHECK: schedule.fill "zero around parts" {{.*}} : memref<48xf32, strided<[1]>>
// CHECK: schedule.copy_block "slice" {{.*}} dim 2 {{.*}} to memref<2x2x3xf32, strided<[6, 3, 1]>>
// CHECK: schedule.copy_block "rearrange" {{.*}} : memref<1x2x6xf32, {{.*}}> {{.*}} to memref<1x2x6xf32, strided<[1, 24, 1]>>
module attributes {mesh.mesh = #mesh.mesh<"x"=3>} {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.parameter "x" init <constant, 1.0> : tensor<2x2x8xf32, #bse>
    %part = mesh.slice %x dim 2 over ["x"] cause "a" : tensor<2x2x8xf32, #bse> -> tensor<2x2x3xf32, #bse>
    %z = transformer.unslice %part dim "sequence" offsets [4] : tensor<2x2x3xf32, #bse> -> tensor<2x8x3xf32, #bse>
    return
  }
  func.func @update() {
    return
  }
}

// -----

// Both read the parameter and travel together; the third reads a part of what
// the first brings.
#ab = #transformer.dims<a, b>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
// CHECK: schedule.collective "all_to_all" {{.*}} dims [0, 0] to [1, 1]
// CHECK: schedule.collective "all_to_all" {{.*}} dims [1] to [0]
// CHECK-NOT: schedule.collective
module attributes {mesh.mesh = #mesh.mesh<"x"=2>} {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.parameter "x" init <constant, 1.0> : tensor<4x8xf32, #ab>
    %y = transformer.parameter "y" init <constant, 1.0> : tensor<4x8xf32, #ab>
    %0 = mesh.all_to_all %x gather 0 split 1 over ["x"] cause "a" : tensor<4x8xf32, #ab> -> tensor<8x4xf32, #ab>
    %1 = mesh.all_to_all %y gather 0 split 1 over ["x"] cause "b" : tensor<4x8xf32, #ab> -> tensor<8x4xf32, #ab>
    %2 = transformer.slice %0 dim "a" offset 2 : tensor<8x4xf32, #ab> -> tensor<4x4xf32, #ab>
    %3 = mesh.all_to_all %2 gather 1 split 0 over ["x"] cause "c" : tensor<4x4xf32, #ab> -> tensor<2x8xf32, #ab>
    return
  }
  func.func @update() {
    return
  }
}

// -----

// Columns of one tensor share no bytes.
#ab = #transformer.dims<a, b>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
// CHECK: schedule.collective "all_gather" {{.*}} dims [0, 0] to [0, 0]
// CHECK-NOT: schedule.collective
module attributes {mesh.mesh = #mesh.mesh<"x"=2>} {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    %x = transformer.parameter "x" init <constant, 1.0> : tensor<2x4xf32, #ab>
    %y = transformer.parameter "y" init <constant, 1.0> : tensor<2x4xf32, #ab>
    %0 = mesh.all_gather %x dim 0 over ["x"] cause "a" : tensor<2x4xf32, #ab> -> tensor<4x4xf32, #ab>
    %1 = mesh.all_gather %y dim 0 over ["x"] cause "b" : tensor<2x4xf32, #ab> -> tensor<4x4xf32, #ab>
    %z = transformer.unslice %0, %1 dim "b" offsets [0, 4] : tensor<4x4xf32, #ab>, tensor<4x4xf32, #ab> -> tensor<4x8xf32, #ab>
    return
  }
  func.func @update() {
    return
  }
}
