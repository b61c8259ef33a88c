// RUN: meshwork-opt %s -transformer-decompose -fusion-accumulations -fusion-fuse="chunks=4 narrow-chunks=64 chunk-elements=512" | FileCheck %s

// RUN: meshwork-opt %s -transformer-decompose -fusion-accumulations -fusion-fuse="chunks=4 narrow-chunks=64 chunk-elements=512 part-elements=1024" | FileCheck %s --check-prefixes=CHECK,LEAST
// RUN: not meshwork-opt %s -fusion-fuse="part-elements=-1" 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: error: part-elements is -1, expected at least 0
#se = #transformer.dims<sequence, embed>
#e = #transformer.dims<embed>

// Narrow rows: as many parts as have 512 elements together.
// CHECK-LABEL: func.func @narrow
// CHECK: transformer.fused {{.*}} -> tensor<16x32xf32
func.func @narrow(%x: tensor<4096x32xf32, #se>) {
  %g = transformer.reduce add %x over <sequence> : tensor<4096x32xf32, #se> -> tensor<32xf32, #e>
  transformer.accumulate gradient "b", %g : tensor<32xf32, #e>
  return
}

// Wide rows have blocks along their columns too.
// CHECK-LABEL: func.func @wide
// CHECK: transformer.fused {{.*}} -> tensor<4x256xf32
func.func @wide(%x: tensor<4096x256xf32, #se>) {
  %g = transformer.reduce add %x over <sequence> : tensor<4096x256xf32, #se> -> tensor<256xf32, #e>
  transformer.accumulate gradient "b", %g : tensor<256xf32, #e>
  return
}

// Never more than there are rows.
// CHECK-LABEL: func.func @short
// CHECK: transformer.fused {{.*}} -> tensor<3x32xf32
func.func @short(%x: tensor<3x32xf32, #se>) {
  %g = transformer.reduce add %x over <sequence> : tensor<3x32xf32, #se> -> tensor<32xf32, #e>
  transformer.accumulate gradient "b", %g : tensor<32xf32, #e>
  return
}

// Sums over everything: a part has 1024 elements, at least.
// LEAST-LABEL: func.func @everything
// LEAST: transformer.fused {{.*}} -> tensor<3xf32
func.func @everything(%x: tensor<96x32xf32, #se>) {
  %g = transformer.reduce add %x over <sequence, embed> : tensor<96x32xf32, #se> -> tensor<f32>
  transformer.accumulate loss "", %g : tensor<f32>
  return
}

// LEAST-LABEL: func.func @few
// LEAST: transformer.fused {{.*}} -> tensor<1xf32
func.func @few(%x: tensor<8x32xf32, #se>) {
  %g = transformer.reduce add %x over <sequence, embed> : tensor<8x32xf32, #se> -> tensor<f32>
  transformer.accumulate loss "", %g : tensor<f32>
  return
}

// Sums of one kernel, of columns and of everything, have as many as the widest.
// CHECK-LABEL: func.func @both
// CHECK: transformer.fused {{.*}} -> tensor<4x256xf32, {{.*}}>, tensor<4xf32,
func.func @both(%x: tensor<4096x256xf32, #se>) {
  %g = transformer.reduce add %x over <sequence> : tensor<4096x256xf32, #se> -> tensor<256xf32, #e>
  %n = transformer.reduce add %x over <sequence, embed> : tensor<4096x256xf32, #se> -> tensor<f32>
  transformer.accumulate gradient "b", %g : tensor<256xf32, #e>
  transformer.accumulate loss "", %n : tensor<f32>
  return
}
