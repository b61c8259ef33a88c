// RUN: meshwork-opt %s -transformer-restart-positions | FileCheck %s

// Rows that lay along the sequence are looked up by the launcher's positions: of a rotary table, and of learned
// positions, here from the third row on.
#bse = #transformer.dims<batch, sequence, embed>
!x = tensor<2x8x4xf32, #bse>
!rotary = tensor<8x4xf32, #transformer.dims<sequence, head_dim>>
!heads = tensor<2x8x4xf32, #transformer.dims<batch, sequence, head_dim>>
!learned = tensor<12x4xf32, #transformer.dims<positions, embed>>
!row = tensor<8x4xf32, #transformer.dims<sequence, embed>>
!tokens = tensor<2x8xi32, #transformer.dims<batch, sequence>>
module {
  // CHECK: func.func @loss(%{{.*}}, %{{.*}}, %[[X:.*]]: {{.*}}, %[[H:.*]]: {{.*}}, %[[P:.*]]: tensor<2x8xi32, #{{.*}}> {transformer.input = "document_positions"})
  func.func @loss(%tokens: !tokens, %targets: !tokens, %x: !x, %h: !heads) {
    // CHECK: %[[C:.*]], %[[S:.*]] = transformer.rotary_table inverse_frequencies [1.000000e+00, 5.000000e-01] scale 1.000000e+00 : tensor<8x4xf32, #[[TABLE:.*]]>
    // CHECK: transformer.embedding %[[C]], %[[P]] : tensor<8x4xf32, #[[TABLE]]>, tensor<2x8xi32, #{{.*}}> -> tensor<2x8x4xf32, #{{.*}}>
    // CHECK: %[[SINE:.*]] = transformer.embedding %[[S]], %[[P]]
    %c, %s = transformer.rotary_table inverse_frequencies [1.0, 0.5] scale 1.0 : !rotary
    // CHECK: transformer.map ins(%[[H]], %[[SINE]]
    %y = transformer.map ins(%h, %s : !heads, !rotary) -> !heads {
    ^bb0(%a: f32, %b: f32):
      %p = arith.mulf %a, %b : f32
      transformer.yield %p : f32
    }
    %w = transformer.parameter "wpe" init <normal, 0.0, 0.02> : !learned
    // CHECK: %[[ROWS:.*]] = transformer.slice %{{.*}} dim "positions" offset 2 : {{.*}} -> tensor<8x4xf32, #[[LEARNED:.*]]>
    // CHECK: %[[E:.*]] = transformer.embedding %[[ROWS]], %[[P]] : tensor<8x4xf32, #[[LEARNED]]>
    %e = transformer.slice %w dim "positions" offset 2 : !learned -> !row
    // CHECK: transformer.map ins(%[[X]], %[[E]]
    %z = transformer.map ins(%x, %e : !x, !row) -> !x {
    ^bb0(%a: f32, %b: f32):
      %p = arith.addf %a, %b : f32
      transformer.yield %p : f32
    }
    return
  }
}
