// RUN: meshwork-opt %s -fusion-drop-unread | FileCheck %s
!x = tensor<4x8xf32, #transformer.dims<sequence, embed>>
!row = tensor<4xf32, #transformer.dims<sequence>>

// The second kernel alone read what the first stored beside, and only for a
// result that is read no more: both go, with the ops and operands behind them.
// CHECK-LABEL: func.func @unread
// CHECK-SAME: (%[[X:[^:]*]]: tensor
func.func @unread(%x: !x, %y: !x) -> (!x, !x) {
  // CHECK-NEXT: %[[FIRST:.*]] = transformer.fused {{.*}} ins(%[[X]] :
  // CHECK-NOT: arith.mulf
  // CHECK: arith.addf
  // CHECK-NOT: arith.mulf
  %a:2 = transformer.fused rows <sequence> cols <embed> ins(%x, %y : !x, !x) -> !x, !x {
  ^bb0(%p: !x, %q: !x):
    %sum = transformer.map ins(%p : !x) -> !x {
    ^bb0(%e: f32):
      %s = arith.addf %e, %e : f32
      transformer.yield %s : f32
    }
    %product = transformer.map ins(%q : !x) -> !x {
    ^bb0(%e: f32):
      %s = arith.mulf %e, %e : f32
      transformer.yield %s : f32
    }
    transformer.yield %sum, %product : !x, !x
  }
  // CHECK: %[[SECOND:.*]] = transformer.fused {{.*}} ins(%[[FIRST]] :
  // CHECK-NOT: transformer.reduce
  // CHECK: return %[[FIRST]], %[[SECOND]]
  %b:2 = transformer.fused rows <sequence> cols <embed> ins(%a#0, %a#1 : !x, !x) -> !x, !row {
  ^bb0(%p: !x, %q: !x):
    %n = transformer.map ins(%p : !x) -> !x {
    ^bb0(%e: f32):
      %s = arith.negf %e : f32
      transformer.yield %s : f32
    }
    %row = transformer.reduce add %q over <embed> : !x -> !row
    transformer.yield %n, %row : !x, !row
  }
  return %a#0, %b#0 : !x, !x
}

// Read results stay, in one kernel.
// CHECK-LABEL: func.func @read
// CHECK: %[[BOTH:.*]]:2 = transformer.fused
// CHECK: transformer.reduce
// CHECK: return %[[BOTH]]#0, %[[BOTH]]#1
func.func @read(%x: !x) -> (!x, !row) {
  %a:2 = transformer.fused rows <sequence> cols <embed> ins(%x : !x) -> !x, !row {
  ^bb0(%p: !x):
    %n = transformer.map ins(%p : !x) -> !x {
    ^bb0(%e: f32):
      %s = arith.negf %e : f32
      transformer.yield %s : f32
    }
    %row = transformer.reduce add %p over <embed> : !x -> !row
    transformer.yield %n, %row : !x, !row
  }
  return %a#0, %a#1 : !x, !row
}

// A kernel that nobody reads goes whole.
// CHECK-LABEL: func.func @all
// CHECK-NEXT: return
func.func @all(%x: !x) {
  %a = transformer.fused rows <sequence> cols <embed> ins(%x : !x) -> !row {
  ^bb0(%p: !x):
    %row = transformer.reduce add %p over <embed> : !x -> !row
    transformer.yield %row : !row
  }
  return
}
