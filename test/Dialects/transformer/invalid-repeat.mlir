// What repeats refuse.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

#se = #transformer.dims<sequence, embed>
func.func @f(%x: tensor<8x4xf32, #se>) -> tensor<8x4xf32, #se> {
  // expected-error@+1 {{'transformer.repeat' op (C1) has 0 turns, expected 1 or more}}
  %y = transformer.repeat 0 over "sequence" cut(%x : tensor<8x4xf32, #se>) -> tensor<8x4xf32, #se> {
  ^bb0(%part: tensor<8x4xf32, #se>):
    transformer.yield %part : tensor<8x4xf32, #se>
  }
  return %y : tensor<8x4xf32, #se>
}

// -----
#se = #transformer.dims<sequence, embed>
func.func @f(%x: tensor<8x4xf32, #se>) -> tensor<8x4xf32, #se> {
  // expected-error@+1 {{'transformer.repeat' op (C1) has 3 parts of 'tensor<8x4xf32, #transformer.dims<sequence, embed>>' along 'sequence', expected a dim of it whose size is a multiple}}
  %y = transformer.repeat 3 over "sequence" cut(%x : tensor<8x4xf32, #se>) -> tensor<8x4xf32, #se> {
  ^bb0(%part: tensor<2x4xf32, #se>):
    transformer.yield %part : tensor<2x4xf32, #se>
  }
  return %y : tensor<8x4xf32, #se>
}

// -----
#se = #transformer.dims<sequence, embed>
func.func @f(%x: tensor<8x4xf32, #se>) -> tensor<8x4xf32, #se> {
  // expected-error@+1 {{'transformer.repeat' op (C1) has 2 parts of 'tensor<8x4xf32, #transformer.dims<sequence, embed>>' along 'heads'}}
  %y = transformer.repeat 2 over "heads" cut(%x : tensor<8x4xf32, #se>) -> tensor<8x4xf32, #se> {
  ^bb0(%part: tensor<4x4xf32, #se>):
    transformer.yield %part : tensor<4x4xf32, #se>
  }
  return %y : tensor<8x4xf32, #se>
}

// -----
#se = #transformer.dims<sequence, embed>
func.func @f(%x: tensor<8x4xf32, #se>) -> tensor<8x4xf32, #se> {
  // expected-error@+1 {{'transformer.repeat' op (C2) has a body of 'tensor<8x4xf32, #transformer.dims<sequence, embed>>', expected 'tensor<4x4xf32, #transformer.dims<sequence, embed>>'}}
  %y = transformer.repeat 2 over "sequence" cut(%x : tensor<8x4xf32, #se>) -> tensor<8x4xf32, #se> {
  ^bb0(%part: tensor<8x4xf32, #se>):
    transformer.yield %part : tensor<8x4xf32, #se>
  }
  return %y : tensor<8x4xf32, #se>
}

// -----
#se = #transformer.dims<sequence, embed>
func.func @f(%x: tensor<8x4xf32, #se>, %s: tensor<f32>) -> tensor<8x4xf32, #se> {
  // expected-error@+1 {{'transformer.repeat' op (C3) yields 'tensor<4x4xf32, #transformer.dims<sequence, embed>>', expected 'tensor<4x4xf32, #transformer.dims<sequence, embed>>', 'tensor<f32>'}}
  %y, %sum = transformer.repeat 2 over "sequence" cut(%x : tensor<8x4xf32, #se>) carry(%s : tensor<f32>) -> tensor<8x4xf32, #se>, tensor<f32> {
  ^bb0(%part: tensor<4x4xf32, #se>, %before: tensor<f32>):
    transformer.yield %part : tensor<4x4xf32, #se>
  }
  return %y : tensor<8x4xf32, #se>
}

// -----
#se = #transformer.dims<sequence, embed>
func.func @f(%x: tensor<8x4xf32, #se>, %s: tensor<f32>) {
  // expected-error@+1 {{'transformer.repeat' op (C3) carries 2 values, but has 1 results}}
  %sum = transformer.repeat 2 over "sequence" cut(%x : tensor<8x4xf32, #se>) carry(%s, %s : tensor<f32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%part: tensor<4x4xf32, #se>, %a: tensor<f32>, %b: tensor<f32>):
    transformer.yield %a : tensor<f32>
  }
  return
}

// -----
#se = #transformer.dims<sequence, embed>
func.func @f(%x: tensor<8x4xf32, #se>, %n: tensor<i32>) {
  // expected-error@+1 {{'transformer.repeat' op (C4) is counted by 'tensor<i32>' and sets 1 results side by side, expected tensor<i32> and none: a turn may not come}}
  %y = transformer.repeat 2 over "sequence" counted %n : tensor<i32> cut(%x : tensor<8x4xf32, #se>) -> tensor<8x4xf32, #se> {
  ^bb0(%part: tensor<4x4xf32, #se>):
    transformer.yield %part : tensor<4x4xf32, #se>
  }
  return
}
