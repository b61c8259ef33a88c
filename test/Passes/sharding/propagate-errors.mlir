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

// -----

#bshd = #transformer.dims<batch, sequence, heads, head_dim>
#bskd = #transformer.dims<batch, sequence, kv_heads, head_dim>
!q = tensor<2x6x4x2xf32, #bshd>
!k = tensor<2x6x2x2xf32, #bskd>
!lse = tensor<2x4x6xf32, #transformer.dims<batch, heads, sequence>>
module attributes {mesh.mesh = #mesh.mesh<"cp"=3>} {
  func.func @microbatch() {
    %q = transformer.parameter "q" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}, {"cp"}, {}, {}]>]} : !q
    %k = transformer.parameter "k" init <constant, 1.0> : !k
    // expected-error@+1 {{'transformer.attention' has 4 heads, 2 of keys, on a rank, which the 3 ranks that split the sequence (cp) cannot share equally; "gathered" and "ring" work with any number of ranks, "ulysses" with 2}}
    %o, %lse = transformer.attention %q, %k, %k causal scale 0.5 shared ulysses : !q, !k, !k -> !q, !lse
    return
  }
}
