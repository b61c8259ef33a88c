// RUN: meshwork-opt %s -fusion-accumulations | FileCheck %s

#se = #transformer.dims<sequence, embed>
#pe = #transformer.dims<positions, embed>
#e = #transformer.dims<embed>

module attributes {transformer.gradient_type = bf16} {
  // CHECK-LABEL: func.func @sum
  func.func @sum(%x: tensor<4x8xf32, #se>) {
    %g = transformer.reduce add %x over <sequence> : tensor<4x8xf32, #se> -> tensor<8xf32, #e>
    // CHECK: %[[OLD:.*]] = transformer.state{{ +}}gradient "w" : tensor<8xbf16
    // CHECK: %[[NEW:.*]] = transformer.map ins(%[[OLD]],
    // CHECK: transformer.assign{{ +}}gradient "w", %[[NEW]]
    transformer.accumulate gradient "w", %g : tensor<8xf32, #e>
    return
  }
  // A part is added where it lies.
  // CHECK-LABEL: func.func @part
  func.func @part(%x: tensor<4x8xf32, #se>) {
    %g = transformer.unslice %x dim "positions" offsets [0] : tensor<4x8xf32, #se> -> tensor<16x8xf32, #pe>
    // CHECK: %[[SLICE:.*]] = transformer.slice
    // CHECK: %[[NEW:.*]] = transformer.map ins(%[[SLICE]],
    // CHECK: transformer.assign{{ +}}gradient "p" dim "positions" offset 0, %[[NEW]]
    // CHECK-NOT: transformer.unslice
    transformer.accumulate gradient "p", %g : tensor<16x8xf32, #pe>
    return
  }
  // Products add in place by themselves.
  // CHECK-LABEL: func.func @product
  func.func @product(%x: tensor<4x8xf32, #se>, %y: tensor<4x8xf32, #transformer.dims<sequence, out>>) {
    // CHECK: %[[P:.*]] = transformer.contract
    // CHECK-NEXT: transformer.accumulate{{ +}}gradient "m", %[[P]]
    %p = transformer.contract "se,sf->ef" %x, %y : tensor<4x8xf32, #se>, tensor<4x8xf32, #transformer.dims<sequence, out>> -> tensor<8x8xf32, #transformer.dims<embed, out>>
    transformer.accumulate gradient "m", %p : tensor<8x8xf32, #transformer.dims<embed, out>>
    return
  }
  // Not where they are to be exact: then the sum is of i32.
  // CHECK-LABEL: func.func @exact
  func.func @exact(%x: tensor<4x8xf32, #se>, %y: tensor<4xf32, #transformer.dims<sequence>>) {
    // CHECK: %[[OLD:.*]] = transformer.state{{ +}}metric "n" : tensor<8xi32
    // CHECK: %[[NEW:.*]] = transformer.map ins(%[[OLD]],
    // CHECK: arith.fptosi
    // CHECK: arith.addi
    // CHECK: transformer.assign{{ +}}metric "n", %[[NEW]] : tensor<8xi32
    %p = transformer.contract "se,s->e" %x, %y : tensor<4x8xf32, #se>, tensor<4xf32, #transformer.dims<sequence>> -> tensor<8xf32, #e>
    transformer.accumulate metric "n" exact, %p : tensor<8xf32, #e>
    return
  }
  // One that adds to a sum of its own does not.
  // CHECK-LABEL: func.func @sum_of_products
  func.func @sum_of_products(%x: tensor<4x8xf32, #se>, %y: tensor<4x8xf32, #transformer.dims<sequence, out>>, %s: tensor<8x8xf32, #transformer.dims<embed, out>>) {
    // CHECK: %[[P:.*]] = transformer.contract
    // CHECK: %[[NEW:.*]] = transformer.map ins(%{{.*}}, %[[P]]
    // CHECK: transformer.assign{{ +}}gradient "m", %[[NEW]]
    %p = transformer.contract "se,sf->ef" %x, %y bias %s : tensor<8x8xf32, #transformer.dims<embed, out>> : tensor<4x8xf32, #se>, tensor<4x8xf32, #transformer.dims<sequence, out>> -> tensor<8x8xf32, #transformer.dims<embed, out>>
    transformer.accumulate gradient "m", %p : tensor<8x8xf32, #transformer.dims<embed, out>>
    return
  }
}
