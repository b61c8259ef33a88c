// RUN: meshwork-opt %s -split-input-file -partition-localize -verify-diagnostics

// expected-error@+1 {{expected the attribute mesh.mesh; run -sharding-annotate first}}
module {
}

// -----

// What is not summed up cannot become a sum. All such reshards are reported.
#e = #transformer.dims<embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @microbatch(%x: tensor<8xf32, #e> {mesh.sharding = #mesh.sharding<[{}]>}) {
  // expected-error@+1 {{'mesh.reshard' op cannot be done: }}
  %0 = mesh.reshard %x from <[{}]> to <[{}], partial = sum {"dp"}> cause "" {mesh.shardings = [#mesh.sharding<[{}], partial = sum {"dp"}>]} : tensor<8xf32, #e>
  // expected-error@+1 {{'mesh.reshard' op cannot be done: }}
  %1 = mesh.reshard %x from <[{}], partial = sum {"dp"}> to <[{}], partial = max {"dp"}> cause "" {mesh.shardings = [#mesh.sharding<[{}], partial = max {"dp"}>]} : tensor<8xf32, #e>
  return
}
}
