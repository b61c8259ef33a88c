// RUN: meshwork-opt %s -split-input-file -schedule-lower -verify-diagnostics | FileCheck %s
// Values that are assigned to a state.

// Nobody reads the old content behind it: made in the state's place.
#e = #transformer.dims<embed>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
!w = tensor<8xf32, #e>
// CHECK: %[[STATE:.*]] = schedule.buffer "w (momentum)"
// CHECK: schedule.list update
// CHECK: %[[OLD:.*]] = schedule.view %[[STATE]] at 0 : memref<32xi8>
// CHECK-NEXT: %[[NEW:.*]] = schedule.view %[[STATE]] at 0 : memref<32xi8>
// CHECK-NEXT: schedule.launch {{.*}}(%[[OLD]], %[[NEW]])
// CHECK-NOT: copy_block
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    return
  }
  func.func @update() {
    %old = transformer.state optimizer "w" slot "momentum" : !w
    %new = transformer.fused rows <> cols #e ins(%old : !w) -> !w {
    ^bb0(%a: !w):
      %r = transformer.map ins(%a : !w) -> !w {
      ^bb0(%x: f32):
        %y = arith.addf %x, %x : f32
        transformer.yield %y : f32
      }
      transformer.yield %r : !w
    }
    transformer.assign optimizer "w" slot "momentum", %new : !w
    return
  }
}

// -----

// The old content is read once more: the new one waits in a buffer of its own.
#e = #transformer.dims<embed>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
!w = tensor<8xf32, #e>
// CHECK: %[[STATE:.*]] = schedule.buffer "w (momentum)"
// CHECK: %[[OWN:.*]] = schedule.buffer "t0"
// CHECK: schedule.list update
// CHECK: %[[OLD:.*]] = schedule.view %[[STATE]]
// CHECK: %[[NEW:.*]] = schedule.view %[[OWN]]
// CHECK: schedule.launch {{.*}}(%[[OLD]], %[[NEW]])
// CHECK: schedule.launch {{.*}}(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK: schedule.copy_block "rearrange"
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    return
  }
  func.func @update() {
    %old = transformer.state optimizer "w" slot "momentum" : !w
    %new = transformer.fused rows <> cols #e ins(%old : !w) -> !w {
    ^bb0(%a: !w):
      %r = transformer.map ins(%a : !w) -> !w {
      ^bb0(%x: f32):
        %y = arith.addf %x, %x : f32
        transformer.yield %y : f32
      }
      transformer.yield %r : !w
    }
    %both = transformer.fused rows <> cols #e ins(%old, %new : !w, !w) -> !w {
    ^bb0(%a: !w, %b: !w):
      %r = transformer.map ins(%a, %b : !w, !w) -> !w {
      ^bb0(%x: f32, %z: f32):
        %y = arith.addf %x, %z : f32
        transformer.yield %y : f32
      }
      transformer.yield %r : !w
    }
    transformer.assign optimizer "w" slot "momentum", %new : !w
    transformer.assign optimizer "w" slot "other", %both : !w
    return
  }
}

// -----

// Assigned twice: made in the first state's place, and copied to the other.
#e = #transformer.dims<embed>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
!w = tensor<8xf32, #e>
// CHECK: schedule.launch
// CHECK: schedule.copy_block "rearrange"
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    return
  }
  func.func @update() {
    %old = transformer.state optimizer "w" slot "momentum" : !w
    %new = transformer.fused rows <> cols #e ins(%old : !w) -> !w {
    ^bb0(%a: !w):
      %r = transformer.map ins(%a : !w) -> !w {
      ^bb0(%x: f32):
        %y = arith.addf %x, %x : f32
        transformer.yield %y : f32
      }
      transformer.yield %r : !w
    }
    transformer.assign optimizer "w" slot "momentum", %new : !w
    transformer.assign optimizer "w" slot "average", %new : !w
    return
  }
}

// -----

// Assigned before somebody reads what was there.
#e = #transformer.dims<embed>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
!w = tensor<8xf32, #e>
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    return
  }
  func.func @update() {
    // expected-note @below {{that value}}
    %old = transformer.state optimizer "w" slot "momentum" : !w
    %new = transformer.fused rows <> cols #e ins(%old : !w) -> !w {
    ^bb0(%a: !w):
      %r = transformer.map ins(%a : !w) -> !w {
      ^bb0(%x: f32):
        %y = arith.addf %x, %x : f32
        transformer.yield %y : f32
      }
      transformer.yield %r : !w
    }
    // expected-error @below {{writes bytes of another value, which is read later}}
    transformer.assign optimizer "w" slot "momentum", %new : !w
    %twice = transformer.fused rows <> cols #e ins(%old : !w) -> !w {
    ^bb0(%a: !w):
      %r = transformer.map ins(%a : !w) -> !w {
      ^bb0(%x: f32):
        %y = arith.mulf %x, %x : f32
        transformer.yield %y : f32
      }
      transformer.yield %r : !w
    }
    transformer.assign optimizer "w" slot "other", %twice : !w
    return
  }
}

// -----

// What is read behind the assignment is the new content, and says so.
#e = #transformer.dims<embed>
!tokens = tensor<1x4xi32, #transformer.dims<batch, sequence>>
!w = tensor<8xf32, #e>
// CHECK: %[[STATE:.*]] = schedule.buffer "w (momentum)"
// CHECK: %[[OTHER:.*]] = schedule.buffer "w (other)"
// CHECK: schedule.list update
// CHECK: schedule.launch {{.*}}(%{{.*}}, %{{.*}})
// CHECK: %[[AGAIN:.*]] = schedule.view %[[STATE]] at 0 updated
// CHECK: %[[LAST:.*]] = schedule.view %[[OTHER]] at 0 : memref<32xi8>
// CHECK-NEXT: schedule.launch {{.*}}(%[[AGAIN]], %[[LAST]])
module {
  func.func @microbatch(%tokens: !tokens, %targets: !tokens) {
    return
  }
  func.func @update() {
    %old = transformer.state optimizer "w" slot "momentum" : !w
    %new = transformer.fused rows <> cols #e ins(%old : !w) -> !w {
    ^bb0(%a: !w):
      %r = transformer.map ins(%a : !w) -> !w {
      ^bb0(%x: f32):
        %y = arith.addf %x, %x : f32
        transformer.yield %y : f32
      }
      transformer.yield %r : !w
    }
    transformer.assign optimizer "w" slot "momentum", %new : !w
    %again = transformer.state optimizer "w" slot "momentum" : !w
    %next = transformer.fused rows <> cols #e ins(%again : !w) -> !w {
    ^bb0(%a: !w):
      %r = transformer.map ins(%a : !w) -> !w {
      ^bb0(%x: f32):
        %y = arith.mulf %x, %x : f32
        transformer.yield %y : f32
      }
      transformer.yield %r : !w
    }
    transformer.assign optimizer "w" slot "other", %next : !w
    return
  }
}
