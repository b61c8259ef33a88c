// RUN: meshwork-opt %s -split-input-file -sharding-shard-states='stage=1 axes=dp' -verify-diagnostics
// RUN: not meshwork-opt -sharding-shard-states='stage=4 axes=dp' %s 2>&1 | FileCheck %s

// CHECK: error: expected functions @microbatch and @update, the attribute mesh.mesh and a stage from 0 to 3

// expected-error@+1 {{expected functions @microbatch and @update, the attribute mesh.mesh and a stage from 0 to 3}}
module {
  func.func @microbatch() {
    return
  }
  func.func @update() {
    return
  }
}

// -----

#fe = #transformer.dims<ffn, embed>
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
  func.func @microbatch() {
    // expected-error@+1 {{has no sharding; run -sharding-propagate first}}
    %w = transformer.parameter "w" init <constant, 1.0> : tensor<16x6xf32, #fe>
    return
  }
  func.func @update() {
    return
  }
}

// -----

// expected-error@+1 {{axis 'dp' of ZeRO is not one of #mesh.mesh<"tp"=2>}}
module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
  func.func @microbatch() {
    return
  }
  func.func @update() {
    return
  }
}
