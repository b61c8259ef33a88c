// RUN: meshwork-opt %s -split-input-file -partition-insert-reshards -verify-diagnostics

// expected-error@+1 {{expected a function @microbatch and the attribute mesh.mesh}}
module {
}

// -----

// expected-error@+1 {{expected a function @update and the attribute mesh.mesh}}
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch() {
  return
}
}

// -----

#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch() {
  // expected-error@+1 {{a value of 'tensor<8xf32, #transformer.dims<embed>>' has no sharding; run -sharding-propagate first}}
  %w = transformer.parameter "w" init <constant, 1.0> : tensor<8xf32, #e>
  return
}
func.func @update() {
  return
}
}

// -----

#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch() {
  // expected-error@+1 {{has no mesh.stored; run -sharding-shard-states first}}
  %w = transformer.parameter "w" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}]>]} : tensor<8xf32, #e>
  return
}
func.func @update() {
  return
}
}

// -----

#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch(%x: tensor<8xf32, #e> {mesh.sharding = #mesh.sharding<[{}]>}) {
  // expected-error@+1 {{has no mesh.stored; run -sharding-shard-states first}}
  transformer.accumulate gradient "w", %x : tensor<8xf32, #e>
  return
}
func.func @update(%x: tensor<8xf32, #e> {mesh.sharding = #mesh.sharding<[{}]>}) {
  return
}
}

// -----

#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch(%x: tensor<8xf32, #e> {mesh.sharding = #mesh.sharding<[{}]>}) {
  // expected-error@+1 {{has no factors; it cannot be split over ranks}}
  %y = mesh.all_reduce %x sum over ["dp"] cause "" {mesh.shardings = [#mesh.sharding<[{}]>]} : tensor<8xf32, #e> -> tensor<8xf32, #e>
  return
}
func.func @update() {
  return
}
}
