// RUN: meshwork-opt %s -split-input-file -sharding-propagate | FileCheck %s

#bse = #transformer.dims<batch, sequence, embed>
#bsf = #transformer.dims<batch, sequence, ffn>
#fe = #transformer.dims<ffn, embed>
#ef = #transformer.dims<embed, ffn>

// Column, then row: the split of `up` reaches the activation, `down` where it is
// open, and through the state's name the gradient of `down`. What is summed over
// "tp" is not split over it.
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "tp"=2>} {
func.func @microbatch(%x: tensor<4x8x8xf32, #bse> {mesh.sharding = #mesh.sharding<[{"dp"}, {}, {}]>}) {
  // CHECK: parameter "up" {{.*}}[#mesh.sharding<[{"tp"}, {}]>]
  %up = transformer.parameter "up" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{"tp"}, {}]>]} : tensor<16x8xf32, #fe>
  // CHECK: parameter "down" {{.*}}[#mesh.sharding<[{}, {"tp"}]>]
  %down = transformer.parameter "down" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{?}, {?}]>]} : tensor<8x16xf32, #ef>
  // CHECK: contract "bse,fe->bsf" {{.*}}[#mesh.sharding<[{"dp"}, {}, {"tp"}]>]
  %h = transformer.contract "bse,fe->bsf" %x, %up : tensor<4x8x8xf32, #bse>, tensor<16x8xf32, #fe> -> tensor<4x8x16xf32, #bsf>
  // CHECK: contract "bsf,ef->bse" {{.*}}[#mesh.sharding<[{"dp"}, {}, {}]>]
  %y = transformer.contract "bsf,ef->bse" %h, %down : tensor<4x8x16xf32, #bsf>, tensor<8x16xf32, #ef> -> tensor<4x8x8xf32, #bse>
  // CHECK: contract "bsf,bse->ef" {{.*}}[#mesh.sharding<[{}, {"tp"}]>]
  %dw = transformer.contract "bsf,bse->ef" %h, %y : tensor<4x8x16xf32, #bsf>, tensor<4x8x8xf32, #bse> -> tensor<8x16xf32, #ef>
  transformer.accumulate gradient "down", %dw : tensor<8x16xf32, #ef>
  return
}
}

// -----

// Nothing is given: all is replicated.
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
func.func @microbatch() {
  // CHECK: parameter "a" {{.*}}[#mesh.sharding<[{}, {}]>]
  %a = transformer.parameter "a" init <constant, 1.0> : tensor<16x8xf32, #fe>
  return
}
}

// -----

// Elementwise ops agree; closed dims, and axes that are said to be replicated,
// stay as they are.
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"x"=2, "y"=2>} {
func.func @microbatch() {
  %given = transformer.parameter "given" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{"x"}, {"y"}]>]} : tensor<16x8xf32, #fe>
  // CHECK: parameter "open" {{.*}}[#mesh.sharding<[{"x"}, {"y"}]>]
  %open = transformer.parameter "open" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{?}, {?}]>]} : tensor<16x8xf32, #fe>
  // CHECK: parameter "half" {{.*}}[#mesh.sharding<[{}, {"y"}]>]
  %half = transformer.parameter "half" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {?}]>]} : tensor<16x8xf32, #fe>
  // CHECK: parameter "kept" {{.*}}[#mesh.sharding<[{}, {"y"}]>]
  %kept = transformer.parameter "kept" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{?}, {?}], replicated = {"x"}>]} : tensor<16x8xf32, #fe>
  // CHECK: transformer.map {{.*}}[#mesh.sharding<[{"x"}, {"y"}]>]
  %sum = transformer.map ins(%given, %open, %half, %kept : tensor<16x8xf32, #fe>, tensor<16x8xf32, #fe>, tensor<16x8xf32, #fe>, tensor<16x8xf32, #fe>) -> tensor<16x8xf32, #fe> {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    transformer.yield %a : f32
  }
  return
}
}

// -----

// Both want "x" on a dim of their own. The stronger priority is heard first.
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"x"=2>} {
func.func @microbatch() {
  %late = transformer.parameter "late" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{"x"}p1, {}]>]} : tensor<16x8xf32, #fe>
  %early = transformer.parameter "early" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {"x"}]>]} : tensor<16x8xf32, #fe>
  // CHECK: transformer.map {{.*}}[#mesh.sharding<[{}, {"x"}]>]
  %sum = transformer.map ins(%late, %early : tensor<16x8xf32, #fe>, tensor<16x8xf32, #fe>) -> tensor<16x8xf32, #fe> {
  ^bb0(%a: f32, %b: f32):
    transformer.yield %a : f32
  }
  return
}
}

// -----

// Equal priorities: parameters count first, however many others there are.
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"x"=2>} {
func.func @microbatch(%p: tensor<16x8xf32, #fe> {mesh.sharding = #mesh.sharding<[{"x"}, {}]>}, %q: tensor<16x8xf32, #fe> {mesh.sharding = #mesh.sharding<[{"x"}, {}]>}) {
  %w = transformer.parameter "w" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {"x"}]>]} : tensor<16x8xf32, #fe>
  // CHECK: transformer.map {{.*}}[#mesh.sharding<[{}, {"x"}]>]
  %sum = transformer.map ins(%p, %q, %w : tensor<16x8xf32, #fe>, tensor<16x8xf32, #fe>, tensor<16x8xf32, #fe>) -> tensor<16x8xf32, #fe> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    transformer.yield %a : f32
  }
  return
}
}

// -----

// Without parameters, more tensors count.
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"x"=2>} {
func.func @microbatch(%p: tensor<16x8xf32, #fe> {mesh.sharding = #mesh.sharding<[{"x"}, {}]>}, %q: tensor<16x8xf32, #fe> {mesh.sharding = #mesh.sharding<[{}, {"x"}]>}, %r: tensor<16x8xf32, #fe> {mesh.sharding = #mesh.sharding<[{}, {"x"}]>}) {
  // CHECK: transformer.map {{.*}}[#mesh.sharding<[{}, {"x"}]>]
  %sum = transformer.map ins(%p, %q, %r : tensor<16x8xf32, #fe>, tensor<16x8xf32, #fe>, tensor<16x8xf32, #fe>) -> tensor<16x8xf32, #fe> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    transformer.yield %a : f32
  }
  return
}
}

// -----

// As many tensors: more bytes. Both tensors are read whole where they lose.
#f = #transformer.dims<ffn>
#e = #transformer.dims<embed>
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"x"=2>} {
func.func @microbatch(%p: tensor<16xf32, #f> {mesh.sharding = #mesh.sharding<[{"x"}]>}, %q: tensor<32xf32, #e> {mesh.sharding = #mesh.sharding<[{"x"}]>}) {
  // CHECK: transformer.map {{.*}}[#mesh.sharding<[{}, {"x"}]>]
  %sum = transformer.map ins(%p, %q : tensor<16xf32, #f>, tensor<32xf32, #e>) -> tensor<16x32xf32, #fe> {
  ^bb0(%a: f32, %b: f32):
    transformer.yield %a : f32
  }
  return
}
}

// -----

// All alike: the first dim.
#f = #transformer.dims<ffn>
#e = #transformer.dims<embed>
#fe = #transformer.dims<ffn, embed>
// CHECK-LABEL: func.func @microbatch
module attributes {mesh.mesh = #mesh.mesh<"x"=2>} {
func.func @microbatch(%p: tensor<16xf32, #f> {mesh.sharding = #mesh.sharding<[{"x"}]>}, %q: tensor<16xf32, #e> {mesh.sharding = #mesh.sharding<[{"x"}]>}) {
  // CHECK: transformer.map {{.*}}[#mesh.sharding<[{"x"}, {}]>]
  %sum = transformer.map ins(%p, %q : tensor<16xf32, #f>, tensor<16xf32, #e>) -> tensor<16x16xf32, #fe> {
  ^bb0(%a: f32, %b: f32):
    transformer.yield %a : f32
  }
  return
}
}
