// RUN: meshwork-opt %s -split-input-file -sharding-propagate -verify-diagnostics
// RUN: echo 'module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {}' | not meshwork-opt -sharding-propagate='function=update' 2>&1 | FileCheck %s

// CHECK: error: expected a function @update and the attribute mesh.mesh

// expected-error@+1 {{expected a function @microbatch and the attribute mesh.mesh}}
module {
  func.func @microbatch() {
    return
  }
}

// -----

// expected-error@+1 {{expected a function @microbatch and the attribute mesh.mesh}}
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
}
