// RUN: meshwork-opt %s -fusion-accumulations -fusion-fuse="chunks=4" -fusion-fold-epilogues | FileCheck %s
// RUN: meshwork-opt %s -fusion-accumulations -fusion-fuse="chunks=4" -fusion-fold-epilogues=measured | FileCheck %s --check-prefix=MEASURED --implicit-check-not=sum_rhs --implicit-check-not=sum_lhs
// MEASURED: transformer.product {{.*}} gelu :

#te = #transformer.dims<tokens, embed>
#tf = #transformer.dims<tokens, ffn>
#ef = #transformer.dims<embed, ffn>
#fe = #transformer.dims<ffn, embed>
#f = #transformer.dims<ffn>
#e = #transformer.dims<embed>

// The gradient of a bias: nothing else makes a pass over %dy. Who adds up the
// chunks stands behind the product then, and adds up one.
// CHECK-LABEL: func.func @bias_gradient
func.func @bias_gradient(%x: tensor<512x64xf32, #te>, %dy: tensor<512x32xf32, #tf>) {
  // CHECK-NOT: transformer.fused
  // CHECK: %[[DW:.*]], %[[SUMS:.*]] = transformer.product "te,tf->ef" %{{.*}}, %{{.*}}{{ +}}sum_rhs {{.*}} -> tensor<64x32xf32, {{.*}}>, tensor<1x32xf32,
  // CHECK: %[[DB:.*]] = transformer.fused {{.*}} ins(%[[SUMS]], %{{.*}} : tensor<1x32xf32,
  // CHECK: transformer.assign{{ +}}gradient "b", %[[DB]]
  // CHECK: transformer.accumulate{{ +}}gradient "w", %[[DW]]
  %db = transformer.reduce add %dy over <tokens> : tensor<512x32xf32, #tf> -> tensor<32xf32, #f>
  transformer.accumulate gradient "b", %db : tensor<32xf32, #f>
  %dw = transformer.contract "te,tf->ef" %x, %dy : tensor<512x64xf32, #te>, tensor<512x32xf32, #tf> -> tensor<64x32xf32, #ef>
  transformer.accumulate gradient "w", %dw : tensor<64x32xf32, #ef>
  return
}

// The weight lies the other way around.
// CHECK-LABEL: func.func @transposed
func.func @transposed(%x: tensor<512x64xf32, #te>, %dy: tensor<512x32xf32, #tf>) {
  // CHECK: transformer.product "tf,te->fe" %{{.*}}, %{{.*}}{{ +}}sum_lhs
  %db = transformer.reduce add %dy over <tokens> : tensor<512x32xf32, #tf> -> tensor<32xf32, #f>
  transformer.accumulate gradient "b", %db : tensor<32xf32, #f>
  %dw = transformer.contract "tf,te->fe" %dy, %x : tensor<512x32xf32, #tf>, tensor<512x64xf32, #te> -> tensor<32x64xf32, #fe>
  transformer.accumulate gradient "w", %dw : tensor<32x64xf32, #fe>
  return
}

// A cluster reads %dy anyway, so sums in the product would save nothing.
// CHECK-LABEL: func.func @read_anyway
func.func @read_anyway(%x: tensor<512x64xf32, #te>, %dy: tensor<512x32xf32, #tf>) -> tensor<512x32xf32, #tf> {
  // CHECK-NOT: transformer.product
  %db = transformer.reduce add %dy over <tokens> : tensor<512x32xf32, #tf> -> tensor<32xf32, #f>
  transformer.accumulate gradient "b", %db : tensor<32xf32, #f>
  %y = transformer.map ins(%dy : tensor<512x32xf32, #tf>) -> tensor<512x32xf32, #tf> {
  ^bb0(%a: f32):
    %b = arith.mulf %a, %a : f32
    transformer.yield %b : f32
  }
  %dw = transformer.contract "te,tf->ef" %x, %dy : tensor<512x64xf32, #te>, tensor<512x32xf32, #tf> -> tensor<64x32xf32, #ef>
  transformer.accumulate gradient "w", %dw : tensor<64x32xf32, #ef>
  return %y : tensor<512x32xf32, #tf>
}

// Sums would be rounded to bf16, the type of the product, on their way to f32.
// CHECK-LABEL: func.func @finer_sums
func.func @finer_sums(%x: tensor<512x64xbf16, #te>, %dy: tensor<512x32xbf16, #tf>) -> tensor<64x32xbf16, #ef> {
  // CHECK-NOT: transformer.product
  %db = transformer.reduce add %dy over <tokens> : tensor<512x32xbf16, #tf> -> tensor<32xf32, #f>
  transformer.accumulate gradient "b", %db : tensor<32xf32, #f>
  %dw = transformer.contract "te,tf->ef" %x, %dy : tensor<512x64xbf16, #te>, tensor<512x32xbf16, #tf> -> tensor<64x32xbf16, #ef>
  return %dw : tensor<64x32xbf16, #ef>
}

// GELU with its bias; the gradient reads what it was applied to.
// CHECK-LABEL: func.func @gelu
func.func @gelu(%x: tensor<512x64xf32, #te>, %w: tensor<64x32xf32, #ef>, %b: tensor<32xf32, #f>, %v: tensor<32x64xf32, #fe>,
    %dz: tensor<512x64xf32, #te>) -> (tensor<512x64xf32, #te>, tensor<512x32xf32, #tf>, tensor<64x32xf32, #ef>) {
  // CHECK: %[[Y:.*]], %[[U:.*]] = transformer.product "te,ef->tf" %{{.*}}, %{{.*}} bias %{{.*}}{{ +}}gelu
  %u = transformer.contract "te,ef->tf" %x, %w bias %b : tensor<32xf32, #f> : tensor<512x64xf32, #te>, tensor<64x32xf32, #ef> -> tensor<512x32xf32, #tf>
  %y = transformer.map ins(%u : tensor<512x32xf32, #tf>) -> tensor<512x32xf32, #tf> {
  ^bb0(%a: f32):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %cube = arith.constant 0.044715 : f32
    %scale = arith.constant 0.797884583 : f32
    %0 = arith.mulf %a, %a : f32
    %1 = arith.mulf %0, %cube : f32
    %2 = arith.addf %one, %1 : f32
    %3 = arith.mulf %a, %scale : f32
    %4 = arith.mulf %2, %3 : f32
    %5 = math.tanh %4 : f32
    %6 = arith.addf %one, %5 : f32
    %7 = arith.mulf %a, %half : f32
    %8 = arith.mulf %6, %7 : f32
    transformer.yield %8 : f32
  }
  // CHECK: transformer.contract "tf,fe->te" %[[Y]]
  %z = transformer.contract "tf,fe->te" %y, %v : tensor<512x32xf32, #tf>, tensor<32x64xf32, #fe> -> tensor<512x64xf32, #te>
  // CHECK: %[[DU:.*]] = transformer.product "te,fe->tf" %{{.*}}, %{{.*}} at %[[U]] : {{.*}}{{ +}}gelu_grad
  // CHECK-NOT: transformer.fused rows #
  // CHECK: transformer.product "te,tf->ef" %{{.*}}, %[[DU]]{{ +}}sum_rhs
  %dy = transformer.contract "te,fe->tf" %dz, %v : tensor<512x64xf32, #te>, tensor<32x64xf32, #fe> -> tensor<512x32xf32, #tf>
  %du = transformer.map ins(%dy, %u : tensor<512x32xf32, #tf>, tensor<512x32xf32, #tf>) -> tensor<512x32xf32, #tf> {
  ^bb0(%g: f32, %a: f32):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %three = arith.constant 3.0 : f32
    %cube = arith.constant 0.044715 : f32
    %scale = arith.constant 0.797884583 : f32
    %0 = arith.mulf %a, %a : f32
    %1 = arith.mulf %0, %cube : f32
    %2 = arith.addf %one, %1 : f32
    %3 = arith.mulf %a, %scale : f32
    %4 = arith.mulf %2, %3 : f32
    %t = math.tanh %4 : f32
    %5 = arith.mulf %t, %t : f32
    %6 = arith.subf %one, %5 : f32
    %7 = arith.mulf %1, %three : f32
    %8 = arith.addf %7, %one : f32
    %9 = arith.mulf %3, %8 : f32
    %10 = arith.mulf %9, %6 : f32
    %11 = arith.addf %10, %t : f32
    %12 = arith.addf %11, %one : f32
    %13 = arith.mulf %12, %half : f32
    %14 = arith.mulf %13, %g : f32
    transformer.yield %14 : f32
  }
  %db = transformer.reduce add %du over <tokens> : tensor<512x32xf32, #tf> -> tensor<32xf32, #f>
  transformer.accumulate gradient "b", %db : tensor<32xf32, #f>
  %dw = transformer.contract "te,tf->ef" %x, %du : tensor<512x64xf32, #te>, tensor<512x32xf32, #tf> -> tensor<64x32xf32, #ef>
  return %z, %du, %dw : tensor<512x64xf32, #te>, tensor<512x32xf32, #tf>, tensor<64x32xf32, #ef>
}

// What GELU was applied to is of no use to anybody else.
// CHECK-LABEL: func.func @input_not_kept
func.func @input_not_kept(%x: tensor<512x64xf32, #te>, %w: tensor<64x32xf32, #ef>) -> tensor<512x32xf32, #tf> {
  // CHECK: %{{[a-z0-9_]+}} = transformer.product "te,ef->tf" {{.*}}{{ +}}gelu {{.*}} -> tensor<512x32xf32, #{{[a-z_]+}}>{{$}}
  // CHECK-NOT: transformer.fused
  %u = transformer.contract "te,ef->tf" %x, %w : tensor<512x64xf32, #te>, tensor<64x32xf32, #ef> -> tensor<512x32xf32, #tf>
  %y = transformer.map ins(%u : tensor<512x32xf32, #tf>) -> tensor<512x32xf32, #tf> {
  ^bb0(%a: f32):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %cube = arith.constant 0.044715 : f32
    %scale = arith.constant 0.797884583 : f32
    %0 = arith.mulf %a, %a : f32
    %1 = arith.mulf %0, %cube : f32
    %2 = arith.addf %one, %1 : f32
    %3 = arith.mulf %a, %scale : f32
    %4 = arith.mulf %2, %3 : f32
    %5 = math.tanh %4 : f32
    %6 = arith.addf %one, %5 : f32
    %7 = arith.mulf %a, %half : f32
    %8 = arith.mulf %6, %7 : f32
    transformer.yield %8 : f32
  }
  return %y : tensor<512x32xf32, #tf>
}

// Another function of the same ops.
// CHECK-LABEL: func.func @another_function
func.func @another_function(%x: tensor<512x64xf32, #te>, %w: tensor<64x32xf32, #ef>) -> tensor<512x32xf32, #tf> {
  // CHECK-NOT: transformer.product
  %u = transformer.contract "te,ef->tf" %x, %w : tensor<512x64xf32, #te>, tensor<64x32xf32, #ef> -> tensor<512x32xf32, #tf>
  %y = transformer.map ins(%u : tensor<512x32xf32, #tf>) -> tensor<512x32xf32, #tf> {
  ^bb0(%a: f32):
    %one = arith.constant 1.0 : f32
    %half = arith.constant 0.5 : f32
    %scale = arith.constant 0.797884583 : f32
    %3 = arith.mulf %a, %scale : f32
    %5 = math.tanh %3 : f32
    %6 = arith.addf %one, %5 : f32
    %7 = arith.mulf %a, %half : f32
    %8 = arith.mulf %6, %7 : f32
    transformer.yield %8 : f32
  }
  return %y : tensor<512x32xf32, #tf>
}
