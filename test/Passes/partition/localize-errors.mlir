// RUN: meshwork-opt %s -split-input-file -partition-localize -verify-diagnostics

// expected-error@+1 {{expected the attribute mesh.mesh; run -sharding-annotate first}}
module {
}

// -----

// What is not summed up cannot become a sum. All such reshards are reported.
#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch(%x: tensor<8xf32, #e> {mesh.sharding = #mesh.sharding<[{}]>}, %s: tensor<8xf32, #e> {mesh.sharding = #mesh.sharding<[{}], partial = sum {"dp"}>}) {
  // expected-error@+1 {{'mesh.reshard' op cannot be done: }}
  %0 = mesh.reshard %x from <[{}]> to <[{}], partial = sum {"dp"}> cause "" {mesh.shardings = [#mesh.sharding<[{}], partial = sum {"dp"}>]} : tensor<8xf32, #e>
  // expected-error@+1 {{'mesh.reshard' op cannot be done: }}
  %1 = mesh.reshard %s from <[{}], partial = sum {"dp"}> to <[{}], partial = max {"dp"}> cause "" {mesh.shardings = [#mesh.sharding<[{}], partial = max {"dp"}>]} : tensor<8xf32, #e>
  return
}
}

// -----

// Half a sum must not be squared, nor added to a whole one, nor stored as one.
#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch(%x: tensor<8xf32, #e> {mesh.sharding = #mesh.sharding<[{}]>}, %s: tensor<8xf32, #e> {mesh.sharding = #mesh.sharding<[{}], partial = sum {"dp"}>}) {
  // expected-error@+1 {{'transformer.map' op operand #0 is [{}] partial sum {"dp"}, a sum that is not complete; expected a mesh.reshard before it}}
  %0 = transformer.map ins(%s : tensor<8xf32, #e>) {mesh.shardings = [#mesh.sharding<[{}]>]} -> tensor<8xf32, #e> {
  ^bb0(%v: f32):
    %m = arith.mulf %v, %v : f32
    transformer.yield %m : f32
  }
  // expected-error@+1 {{'transformer.map' op operand #1 is [{}] partial sum {"dp"}, a sum that is not complete}}
  %1 = transformer.map ins(%x, %s : tensor<8xf32, #e>, tensor<8xf32, #e>) {mesh.shardings = [#mesh.sharding<[{}], partial = sum {"dp"}>]} -> tensor<8xf32, #e> {
  ^bb0(%v: f32, %w: f32):
    %m = arith.addf %v, %w : f32
    transformer.yield %m : f32
  }
  // expected-error@+1 {{'transformer.accumulate' op operand #0 is [{}] partial sum {"dp"}}}
  transformer.accumulate gradient "w", %s {mesh.stored = #mesh.sharding<[{}]>} : tensor<8xf32, #e>
  // expected-error@+1 {{'transformer.assign' op operand #0 is [{}] partial sum {"dp"}}}
  transformer.assign weight "w", %s {mesh.stored = #mesh.sharding<[{}]>} : tensor<8xf32, #e>
  // expected-error@+1 {{'mesh.reshard' op starts from [{"dp"}], but its input is [{}]}}
  %2 = mesh.reshard %x from <[{"dp"}]> to <[{}]> cause "" {mesh.shardings = [#mesh.sharding<[{}]>]} : tensor<8xf32, #e>
  return
}
}
