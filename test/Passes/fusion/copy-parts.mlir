// RUN: meshwork-opt %s -fusion-copy-parts | FileCheck %s
// A part is written where it lies, once, by what makes it. Views, inputs and
// what is a part already are copied.

#s = #transformer.dims<sequence>
#qs = #transformer.dims<qkv, sequence>
!s = tensor<4xf32, #s>
!qs = tensor<2x4xf32, #qs>
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
// CHECK-LABEL: func.func @slice_of_a_rank
func.func @slice_of_a_rank(%x: tensor<8xf32, #s>, %y: !s) -> !qs {
  // CHECK: %[[SLICE:.*]] = mesh.slice
  %a = mesh.slice %x dim 0 over ["tp"] cause "" : tensor<8xf32, #s> -> !s
  // CHECK: %[[B:.*]] = transformer.map
  %b = transformer.map ins(%y : !s) -> !s {
  ^bb0(%p: f32):
    %0 = math.exp %p : f32
    transformer.yield %0 : f32
  }
  // CHECK: %[[A:.*]] = transformer.map ins(%[[SLICE]] : {{.*}} {transformer.backward}
  // CHECK: transformer.unslice %[[A]], %[[B]] dim
  %z = transformer.unslice %a, %b dim "qkv" offsets [0, 1] {transformer.backward} : !s, !s -> !qs
  return %z : !qs
}

// CHECK-LABEL: func.func @twice
func.func @twice(%x: !s) -> (!qs, !qs) {
  // CHECK: %[[E:.*]] = transformer.map
  %e = transformer.map ins(%x : !s) -> !s {
  ^bb0(%p: f32):
    %0 = math.exp %p : f32
    transformer.yield %0 : f32
  }
  // CHECK: %[[SECOND:.*]] = transformer.map ins(%[[E]]
  // CHECK: transformer.unslice %[[E]], %[[SECOND]] dim
  %z = transformer.unslice %e, %e dim "qkv" offsets [0, 1] : !s, !s -> !qs
  // CHECK: %[[INPUT:.*]] = transformer.map
  // CHECK: %[[THIRD:.*]] = transformer.map ins(%[[E]]
  // CHECK: transformer.unslice %[[INPUT]], %[[THIRD]] dim
  %w = transformer.unslice %x, %e dim "qkv" offsets [0, 1] : !s, !s -> !qs
  return %z, %w : !qs, !qs
}
}
