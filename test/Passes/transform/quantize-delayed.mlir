// RUN: meshwork-opt %s -transformer-quantize="delayed targets=1024" | FileCheck %s
// RUN: meshwork-opt %s -transformer-quantize="delayed targets=1024 tiles" | FileCheck %s --check-prefix=TILES
// RUN: not meshwork-opt %s -transformer-quantize="delayed targets=0" 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: delayed scaling: expected a function @update that assigns the gradient norm, and at least one target of a step

#te = #transformer.dims<sequence, embed>
#fe = #transformer.dims<ffn, embed>
#tf = #transformer.dims<sequence, ffn>

// The activation is scaled by what the steps before have found, known from the
// start; what this step finds is kept apart. The weight is scaled as it is.
// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%x: tensor<32x16xbf16, #te>) {
  // CHECK-DAG: %[[DM:.*]] = transformer.state{{ +}}optimizer "w" slot "gradient_magnitude" : tensor<f32>
  // CHECK-DAG: %[[XM:.*]] = transformer.state{{ +}}optimizer "w" slot "input_magnitude" : tensor<f32>
  // CHECK-DAG: %[[S:.*]]:2 = transformer.map ins(%[[XM]] : tensor<f32>) -> tensor<f32>, tensor<f32>
  // CHECK-DAG: %[[D:.*]]:2 = transformer.map ins(%[[DM]] : tensor<f32>) -> tensor<f32>, tensor<f32>
  // Of a first step: 448, and 57344 / 1024.
  // CHECK-DAG: arith.constant 4.480000e+02 : f32
  // CHECK-DAG: arith.constant 5.600000e+01 : f32
  %w = transformer.parameter "w" init <constant, 1.0> : tensor<16x16xbf16, #fe>
  // CHECK: %[[MAX:.*]] = transformer.reduce{{ +}}max
  // CHECK: transformer.accumulate{{ +}}magnitude "w" slot "input_now", %[[MAX]] : tensor<f32>
  // CHECK: %[[T:.*]]:2 = transformer.map ins(%{{.*}} : tensor<f32>) -> tensor<f32>, tensor<f32>
  // An infinity less itself is NaN, which FP8 has.
  // CHECK: %[[QX:.*]] = transformer.map ins(%arg0, %[[S]]#0 :
  // CHECK: %[[SCALED:.*]] = arith.mulf
  // CHECK: %[[ZERO:.*]] = arith.subf %[[E:.*]], %[[E]] : f32
  // CHECK: arith.addf %[[SCALED]], %[[ZERO]] : f32
  // CHECK: transformer.map ins(%{{.*}}, %[[T]]#0 : {{.*}} {transformer.not_before} -> tensor<16x16xf8E4M3FN
  // CHECK: transformer.contract "te,fe->tf" %[[QX]], %{{.*}} scaled %[[S]]#1, %[[T]]#1
  %y = transformer.contract "te,fe->tf" %x, %w : tensor<32x16xbf16, #te>, tensor<16x16xbf16, #fe> -> tensor<32x16xbf16, #tf>
  %dy = transformer.map ins(%y : tensor<32x16xbf16, #tf>) {transformer.pass = #transformer.pass<backward>} -> tensor<32x16xbf16, #tf> {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    transformer.yield %0 : f32
  }
  // What makes the gradient can make its copy, but no transposed one.
  // CHECK: transformer.accumulate{{ +}}magnitude "w" slot "gradient_now", %{{.*}} {transformer.pass = #transformer.pass<backward>}
  // CHECK: transformer.map ins(%{{.*}}, %[[D]]#0 : {{.*}} {transformer.pass = #transformer.pass<backward>} -> tensor<32x16xf8E5M2
  // CHECK: transformer.map ins(%{{.*}}, %[[D]]#0 : {{.*}} {transformer.not_before, transformer.pass = #transformer.pass<backward>} -> tensor<16x32xf8E5M2
  %dx = transformer.contract "tf,fe->te" %dy, %w {transformer.pass = #transformer.pass<backward>} : tensor<32x16xbf16, #tf>, tensor<16x16xbf16, #fe> -> tensor<32x16xbf16, #te>
  %dw = transformer.contract "te,tf->fe" %x, %dy {transformer.pass = #transformer.pass<backward>} : tensor<32x16xbf16, #te>, tensor<32x16xbf16, #tf> -> tensor<16x16xbf16, #fe>
  transformer.accumulate gradient "w", %dw : tensor<16x16xbf16, #fe>
  return
}

// A GPU's kernel of tiles makes both.
// TILES-COUNT-2: transformer.map ins(%{{.*}}, %{{.*}}#0 : {{.*}} {transformer.pass = #transformer.pass<backward>} -> tensor<{{16x32|32x16}}xf8E5M2

// The larger of this step's and of what is left of those before, 2^(-1/16) of
// it; not before the norm is known.
// CHECK-LABEL: func.func @update
func.func @update() {
  // CHECK-DAG: %[[NOW:.*]] = transformer.state{{ +}}magnitude "w" slot "input_now" : tensor<f32>
  // CHECK-DAG: %[[KEPT:.*]] = transformer.state{{ +}}optimizer "w" slot "input_magnitude" : tensor<f32>
  // CHECK-DAG: %[[NORM:.*]] = transformer.state{{ +}}loss
  // Tensors of the step that went beyond their scale, before anything is updated.
  // CHECK: arith.cmpf ogt
  // CHECK: transformer.assign{{ +}}saturated "", %{{.*}} : tensor<f32>
  // CHECK: transformer.assign{{ +}}grad_norm
  %norm = transformer.state loss "" : tensor<f32>
  transformer.assign grad_norm "", %norm : tensor<f32>
  // CHECK: %[[NEXT:.*]] = transformer.map ins(%[[KEPT]], %[[NOW]], %[[NORM]] : {{.*}}transformer.not_before
  // CHECK: arith.constant 0.957603{{.*}} : f32
  // CHECK: arith.maximumf
  // CHECK: transformer.assign{{ +}}optimizer "w" slot "input_magnitude", %[[NEXT]]
  return
}
