// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

//===-- attributes ----------------------------------------------------------//

// expected-error@+1 {{axis "dp" occurs twice}}
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "dp"=4>} {}

// -----

// expected-error@+1 {{axis "tp" has size 0, expected a positive size and a product that fits 63 bits}}
module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "tp"=0>} {}

// -----

// expected-error@+1 {{axis "tp" has size 4294967296, expected a positive size and a product that fits 63 bits}}
module attributes {mesh.mesh = #mesh.mesh<"dp"=4294967296, "tp"=4294967296>} {}

// -----

// expected-error@+1 {{'builtin.module' op (A1) mesh.mesh is 4 : i64, expected a mesh, on a module}}
module attributes {mesh.mesh = 4} {}

// -----

// expected-error@+1 {{'func.func' op (A1) mesh.mesh is #mesh.mesh<"dp"=2>, expected a mesh, on a module}}
func.func private @f() attributes {mesh.mesh = #mesh.mesh<"dp"=2>}

// -----

// expected-error@+1 {{axis "tp" is used twice; an axis splits one dim, or is replicated, or is partial}}
func.func private @f(tensor<4x8xf32> {mesh.sharding = #mesh.sharding<[{"tp"}, {"tp"}]>})

// -----

// expected-error@+1 {{axis "tp" is used twice}}
func.func private @f(tensor<4x8xf32> {mesh.sharding = #mesh.sharding<[{"tp"}, {}], partial = sum {"tp"}>})

// -----

// expected-error@+1 {{expected nothing after '?'}}
func.func private @f(tensor<4x8xf32> {mesh.sharding = #mesh.sharding<[{?, "tp"}, {}]>})

// -----

// expected-error@+1 {{expected a priority like p1}}
func.func private @f(tensor<4x8xf32> {mesh.sharding = #mesh.sharding<[{"tp"}p99999999999999999999, {}]>})

// -----

// expected-error@+1 {{partial is 'product', expected sum or max}}
func.func private @f(tensor<4x8xf32> {mesh.sharding = #mesh.sharding<[{}, {}], partial = product {"tp"}>})

// -----

// expected-error@+1 {{expected `replicated` or `partial`, found 'open'}}
func.func private @f(tensor<4x8xf32> {mesh.sharding = #mesh.sharding<[{}, {}], open = {"tp"}>})

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
// expected-error@+1 {{(A3) argument 0: #mesh.sharding<[{"dp"}]> has 1 dims, the tensor has 2}}
func.func @f(%x: tensor<4x8xf32> {mesh.sharding = #mesh.sharding<[{"dp"}]>}) {
  return
}
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
// expected-error@+1 {{(A3) argument 1: #mesh.sharding<[{"tp"}]> names axis "tp", expected one of #mesh.mesh<"dp"=2>}}
func.func private @f(tensor<4xf32>, tensor<4xf32> {mesh.sharding = #mesh.sharding<[{"tp"}]>})
}

// -----

// expected-error@+1 {{(A3) mesh.sharding of argument 0 is "dp", expected a sharding}}
func.func private @f(tensor<4xf32> {mesh.sharding = "dp"})

// -----

func.func @f() {
  // expected-error@+1 {{(A2) mesh.shardings is [], expected a list of 1, one for each result}}
  %0 = transformer.parameter "w" init <constant, 1.0> {mesh.shardings = []} : tensor<4xf32, #transformer.dims<embed>>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{(A2) mesh.shardings holds "dp", expected a sharding or unit}}
  %0 = transformer.parameter "w" init <constant, 1.0> {mesh.shardings = ["dp"]} : tensor<4xf32, #transformer.dims<embed>>
  return
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f() {
  // expected-error@+1 {{(A3) #mesh.sharding<[{}], replicated = {"tp"}> names axis "tp", expected one of #mesh.mesh<"dp"=2>}}
  %0 = transformer.parameter "w" init <constant, 1.0> {mesh.shardings = [#mesh.sharding<[{}], replicated = {"tp"}>]} : tensor<4xf32, #transformer.dims<embed>>
  return
}
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f() {
  // expected-error@+1 {{(A3) #mesh.sharding<[{"x"}]> names axis "x", expected one of #mesh.mesh<"dp"=2>}}
  %w = transformer.parameter "w" init <constant, 1.0> {mesh.stored = #mesh.sharding<[{"x"}]>} : tensor<4xf32, #transformer.dims<embed>>
  return
}
}

// -----

func.func @f() {
  // expected-error@+1 {{(A3) mesh.stored is 1 : i64, expected a sharding}}
  %w = transformer.parameter "w" init <constant, 1.0> {mesh.stored = 1} : tensor<4xf32, #transformer.dims<embed>>
  return
}

// -----

//===-- reshard -------------------------------------------------------------//

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.reshard' op (C1) #mesh.sharding<[{"dp"}]> has 1 dims, the tensor has 2}}
  %0 = mesh.reshard %x from <[{"dp"}]> to <[{}, {}]> cause "" : tensor<4x8xf32>
  return
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.reshard' op (C1) #mesh.sharding<[{}, {}], partial = sum {"tp"}> names axis "tp", expected one of #mesh.mesh<"dp"=2>}}
  %0 = mesh.reshard %x from <[{"dp"}, {}]> to <[{}, {}], partial = sum {"tp"}> cause "" : tensor<4x8xf32>
  return
}
}

// -----

//===-- collectives ---------------------------------------------------------//

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.all_reduce' op (C1) names axis "tp", expected one of #mesh.mesh<"dp"=2>}}
  %0 = mesh.all_reduce %x sum over ["tp"] cause "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.all_reduce' op (C1) names no axis}}
  %0 = mesh.all_reduce %x sum over [] cause "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.all_gather' op (C1) names axis "dp" twice}}
  %0 = mesh.all_gather %x dim 0 over ["dp", "dp"] cause "" : tensor<4x8xf32> -> tensor<8x8xf32>
  return
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.all_gather' op (C2) dim 0 has 4 elements, expected ceil(10 / 2)}}
  %0 = mesh.all_gather %x dim 0 over ["dp"] cause "" : tensor<4x8xf32> -> tensor<10x8xf32>
  return
}
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.all_gather' op (C2) dim 1 has 8 and 16 elements, expected equal sizes}}
  %0 = mesh.all_gather %x dim 0 over ["dp"] cause "" : tensor<4x8xf32> -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.all_gather' op (C2) dim 2 of 'tensor<4x8xf32>' and 'tensor<8x8xf32>' is not a dim of two tensors of one kind}}
  %0 = mesh.all_gather %x dim 2 over ["dp"] cause "" : tensor<4x8xf32> -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.all_gather' op (C2) dim 0 of 'tensor<4x8xf32>' and 'tensor<8x8xbf16>' is not a dim of two tensors of one kind}}
  %0 = mesh.all_gather %x dim 0 over ["dp"] cause "" : tensor<4x8xf32> -> tensor<8x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.reduce_scatter' op (C1) names no axis}}
  %0 = mesh.reduce_scatter %x sum dim 0 over [] cause "" : tensor<4x8xf32> -> tensor<2x8xf32>
  return
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=4>} {
func.func @f(%x: tensor<6x8xf32>) {
  // expected-error@+1 {{'mesh.reduce_scatter' op (C2) dim 0 has 1 elements, expected ceil(6 / 4)}}
  %0 = mesh.reduce_scatter %x sum dim 0 over ["dp"] cause "" : tensor<6x8xf32> -> tensor<1x8xf32>
  return
}
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.slice' op (C1) names no axis}}
  %0 = mesh.slice %x dim 0 over [] cause "" : tensor<4x8xf32> -> tensor<2x8xf32>
  return
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.slice' op (C2) dim 1 has 8 elements, expected ceil(8 / 2)}}
  %0 = mesh.slice %x dim 1 over ["dp"] cause "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.all_to_all' op (C1) names no axis}}
  %0 = mesh.all_to_all %x gather 0 split 1 over [] cause "" : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.all_to_all' op (C2) gathers and splits dim 1; the two differ}}
  %0 = mesh.all_to_all %x gather 1 split 1 over ["dp"] cause "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.all_to_all' op (C2) dim 1 has 2 elements, expected ceil(8 / 2)}}
  %0 = mesh.all_to_all %x gather 0 split 1 over ["dp"] cause "" : tensor<4x8xf32> -> tensor<8x2xf32>
  return
}
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.permute' op (C1) names no axis}}
  %0 = mesh.permute %x sources [1, 0] over [] cause "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.permute' op (C2) sources are not a permutation of the 2 indices of the group, of which some may be -1}}
  %0 = mesh.permute %x sources [1, 1] over ["dp"] cause "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.permute' op (C2) sources are not a permutation of the 2 indices of the group, of which some may be -1}}
  %0 = mesh.permute %x sources [1, 0, 2] over ["dp"] cause "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'mesh.permute' op (C2) sources are not a permutation of the 2 indices of the group, of which some may be -1}}
  %0 = mesh.permute %x sources [] over ["dp"] cause "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
}

// -----

//===-- coordinate ----------------------------------------------------------//

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f() {
  // expected-error@+1 {{'mesh.coordinate' op (C1) names axis "tp", expected one of #mesh.mesh<"dp"=2>}}
  %0 = mesh.coordinate over ["tp"] of 4 : tensor<i32>
  return
}
}

// -----

func.func @f() {
  // expected-error@+1 {{'mesh.coordinate' op (C1) size is 0, expected a positive number}}
  %0 = mesh.coordinate over ["tp"] of 0 : tensor<i32>
  return
}

// -----

//===-- extent --------------------------------------------------------------//

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f() {
  // expected-error@+1 {{'mesh.extent' op (C1) names axis "tp", expected one of #mesh.mesh<"dp"=2>}}
  %0 = mesh.extent over ["tp"] of 4 : tensor<i32>
  return
}
}

// -----

func.func @f() {
  // expected-error@+1 {{'mesh.extent' op (C1) size is 0, expected a positive number}}
  %0 = mesh.extent over ["tp"] of 0 : tensor<i32>
  return
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{layer is -1, expected 0 or more}}
  %0 = mesh.all_reduce %x sum over ["dp"] cause "w" layer -1 : tensor<8xf32> -> tensor<8xf32>
  return
}
}

// -----

//===-- positions -----------------------------------------------------------//

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f() {
  // expected-error@+1 {{'mesh.positions' op (C1) names axis "tp", expected one of #mesh.mesh<"dp"=2>}}
  %0 = mesh.positions of 4 over {"tp" zigzag} : tensor<2xi32>
  return
}
}

// -----

func.func @f() {
  // expected-error@+1 {{'mesh.positions' op (C1) names no axis}}
  %0 = mesh.positions of 4 over {} : tensor<4xi32>
  return
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"cp"=2>} {
func.func @f() {
  // expected-error@+1 {{'mesh.positions' op (C3) has the hop 2, expected 0 to less than the 2 ranks}}
  %0 = mesh.positions of 4 over {"cp"} hop 2 : tensor<2xi32>
  return
}
}

// -----

func.func @f() {
  // expected-error@+1 {{'mesh.positions' op (C1) size is 0, expected a positive number}}
  %0 = mesh.positions of 0 over {"tp" zigzag} : tensor<2xi32>
  return
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
func.func @f() {
  // expected-error@+1 {{'mesh.positions' op (C2) has 3 elements, expected 4, the part of a rank}}
  %0 = mesh.positions of 5 over {"dp" zigzag} : tensor<3xi32>
  return
}
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"pp"=2>} {
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{'mesh.send' op (C1) names axis "dp", expected one of}}
  mesh.send forward %x over "dp" to 1 : tensor<4xf32>
  return
}
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"pp"=2>} {
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{'mesh.send' op (C1) has peer 2 along axis "pp", which has 2 coordinates}}
  mesh.send backward %x over "pp" to 2 : tensor<4xf32>
  return
}
}

// -----

module attributes {mesh.mesh = #mesh.mesh<"pp"=2>} {
func.func @f() -> tensor<4xf32> {
  // expected-error@+1 {{'mesh.receive' op (C1) has peer -1 along axis "pp", which has 2 coordinates}}
  %x = mesh.receive forward over "pp" from -1 : tensor<4xf32>
  return %x : tensor<4xf32>
}
}

// -----

func.func @chunk(%x: tensor<4xf32>) {
  // expected-error@+1 {{(A4) mesh.chunk is true, expected `unit`}}
  func.call @chunk(%x) {mesh.chunk = true} : (tensor<4xf32>) -> ()
  return
}
