// Products in chunks: which pairs are found, and what stays whole.
// RUN: meshwork-opt -partition-chunk-products="mode=always chunks=2" %s | FileCheck %s
// RUN: meshwork-opt -partition-chunk-products="mode=auto chunks=2" %s | FileCheck %s --check-prefix=AUTO
// RUN: meshwork-opt -partition-chunk-products="mode=always chunks=1" %s | FileCheck %s --check-prefix=ONE
// RUN: meshwork-opt -partition-chunk-products="mode=never" %s | FileCheck %s --check-prefix=ONE
// AUTO-COUNT-3: left whole: moving chunks takes the cores that multiply
// ONE-NOT: mesh.chunk
!x = tensor<1x3x8xf32, #transformer.dims<batch, sequence, embed>>
!all = tensor<1x6x8xf32, #transformer.dims<batch, sequence, embed>>
!w = tensor<8x4xf32, #transformer.dims<embed, ffn>>
!v = tensor<4x8xf32, #transformer.dims<ffn, embed>>
!y = tensor<1x6x4xf32, #transformer.dims<batch, sequence, ffn>>
!two = tensor<2x3x8xf32, #transformer.dims<batch, sequence, embed>>
!twoAll = tensor<2x6x8xf32, #transformer.dims<batch, sequence, embed>>
!twoY = tensor<2x6x4xf32, #transformer.dims<batch, sequence, ffn>>
!odd = tensor<1x5x8xf32, #transformer.dims<batch, sequence, embed>>
!oddY = tensor<1x5x4xf32, #transformer.dims<batch, sequence, ffn>>
!part = tensor<4x4xf32, #transformer.dims<embed, ffn>>
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
  // Chunks of one row and of two, of each rank. The map between stays whole.
  // CHECK-LABEL: func.func @tokens
  // CHECK: mesh.all_gather {{.*}}in 2 chunks{{.*}}mesh.chunk{{.*}} : tensor<1x1x8xf32, {{.*}}> -> tensor<1x2x8xf32
  // CHECK: transformer.contract {{.*}} -> tensor<1x2x1x4xf32
  // CHECK: mesh.all_gather {{.*}}mesh.chunk{{.*}} : tensor<1x2x8xf32, {{.*}}> -> tensor<1x4x8xf32
  // CHECK: transformer.contract {{.*}} -> tensor<1x2x2x4xf32
  // CHECK: mesh.reduce_scatter {{.*}}mesh.chunk{{.*}} -> tensor<1x1x8xf32
  // CHECK: mesh.reduce_scatter {{.*}}mesh.chunk{{.*}} -> tensor<1x2x8xf32
  func.func @tokens(%x: !x, %w: !w, %v: !v) -> !x {
    %all = mesh.all_gather %x dim 1 over ["tp"] cause "x" : !x -> !all
    %y = transformer.contract "bse,ef->bsf" %all, %w : !all, !w -> !y
    %e = transformer.map ins(%y : !y) -> !y {
    ^bb0(%a: f32):
      %b = math.exp %a : f32
      transformer.yield %b : f32
    }
    %z = transformer.contract "bsf,fe->bse" %e, %v : !y, !v -> !all
    %r = mesh.reduce_scatter %z sum dim 1 over ["tp"] cause "z" : !all -> !x
    return %r : !x
  }
  // CHECK-LABEL: func.func @samples
  // CHECK: mesh.all_gather {{.*}}mesh.chunk{{.*}} : tensor<1x3x8xf32, {{.*}}> -> tensor<1x6x8xf32
  // CHECK: transformer.unslice {{.*}} dim "batch"
  func.func @samples(%x: !two, %w: !w) -> !twoY {
    %all = mesh.all_gather %x dim 1 over ["tp"] cause "x" : !two -> !twoAll
    %y = transformer.contract "bse,ef->bsf" %all, %w : !twoAll, !w -> !twoY
    return %y : !twoY
  }
  // The sum also takes %e, which stands behind the product and others read.
  // CHECK-LABEL: func.func @behind
  // CHECK: mesh.reduce_scatter {{.*}}mesh.chunk
  // CHECK: mesh.reduce_scatter {{.*}}mesh.chunk
  func.func @behind(%y: !y, %v: !v, %x: !all) -> (!x, !all) {
    %z = transformer.contract "bsf,fe->bse" %y, %v : !y, !v -> !all
    %e = transformer.map ins(%x : !all) -> !all {
    ^bb0(%a: f32):
      %b = math.exp %a : f32
      transformer.yield %b : f32
    }
    %s = transformer.map ins(%z, %e : !all, !all) -> !all {
    ^bb0(%a: f32, %c: f32):
      %b = arith.addf %a, %c : f32
      transformer.yield %b : f32
    }
    %r = mesh.reduce_scatter %s sum dim 1 over ["tp"] cause "s" : !all -> !x
    return %r, %e : !x, !all
  }
  // A gather that drops padding, one of a weight, and a product over tokens.
  // CHECK-LABEL: func.func @whole
  // CHECK-NOT: mesh.chunk
  func.func @whole(%x: !x, %part: !part, %y: !oddY) -> (!oddY, !w) {
    %all = mesh.all_gather %x dim 1 over ["tp"] cause "x" : !x -> !odd
    %w = mesh.all_gather %part dim 0 over ["tp"] cause "w" : !part -> !w
    %p = transformer.contract "bse,ef->bsf" %all, %w : !odd, !w -> !oddY
    %d = transformer.contract "bse,bsf->ef" %all, %y : !odd, !oddY -> !w
    return %p, %d : !oddY, !w
  }
}
