// Passes that give each rank its part.
#ifndef MESHWORK_PARTITION_PASSES
#define MESHWORK_PARTITION_PASSES
include "mlir/Pass/PassBase.td"

def InsertReshardsPass : Pass<"partition-insert-reshards", "::mlir::ModuleOp"> {
  let summary = "Gives every operand the sharding that its user needs";
  let description = [{
    Before: `@microbatch` and `@update`, in which every value has a sharding
    (-sharding-propagate), every state `mesh.stored` (-sharding-shard-states).
    After: each op's operands agree on
    its factors; what did not has a `mesh.reshard` that says why. A value's
    `mesh.shardings` is then how it is computed: partial where its op sums over
    a split dim. Sums of partial values are added up before they are reduced,
    and gradients stay partial in their state until `@update` reads them.
    A weight that is stored in parts is gathered for the forward and for the
    backward pass. Over axes of `once` it is gathered before, once a step
    (`transformer.of_step`).
    ```mlir
    // meshwork-opt -partition-insert-reshards
    !x = tensor<4x8xf32, #transformer.dims<batch, embed>>
    !y = tensor<4xf32, #transformer.dims<batch>>
    module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
      func.func @microbatch(%x: !x {mesh.sharding = #mesh.sharding<[{}, {"tp"} ]>}) {
        %s = transformer.reduce add %x over <embed> {mesh.shardings = [#mesh.sharding<[{} ]>]} : !x -> !y
        %y = transformer.map ins(%s : !y) {mesh.shardings = [#mesh.sharding<[{} ]>]} -> !y {
        ^bb0(%v: f32):
          %e = math.exp %v : f32
          transformer.yield %e : f32
        }
        return
      }
      func.func @update() { return }
    }
    // becomes
    %s = transformer.reduce add %x over #embed {mesh.shardings = [... partial = sum {"tp"}>]} : ...
    %r = mesh.reshard %s from ... partial = sum {"tp"}> to ... why "sums over embed, which tp splits" ...
    %y = transformer.map ins(%r : ...) ... {
    ```
  }];
  let options = [
    ListOption<"once", "once", "std::string", "axes over which weights that are stored in parts are gathered once a step, for all uses">];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
}

def LocalizePass : Pass<"partition-localize", "::mlir::ModuleOp"> {
  let summary = "Turns whole tensors into one rank's parts, and reshards into collectives";
  let description = [{
    Before: `mesh.shardings` on every value. After: types are local; the steps of
    the reshard planner stand where `mesh.reshard` was; positions that ops count
    (rows of a split table, heads, dropout) start at the rank's own.
    Where axes do not divide a dim, parts have the size of a
    full block, and what lies behind their end is masked where a result would
    depend on it (README.md). `mesh.shardings` and `mesh.global_shape` stay on state.
    ```mlir
    // meshwork-opt -partition-localize
    !x = tensor<8x4xf32, #transformer.dims<batch, embed>>
    module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
      func.func @microbatch(%x: !x {mesh.sharding = #mesh.sharding<[{"dp"}, {} ]>}) {
        %y = mesh.reshard %x from <[{"dp"}, {} ]> to <[{}, {} ]> cause "x"
            {mesh.shardings = [#mesh.sharding<[{}, {} ]>]} : !x
        return
      }
    }
    // becomes
    func.func @microbatch(%x: tensor<4x4xf32, #batch_embed>) {
      %y = mesh.all_gather %x dim 0 over ["dp"] cause "x" : tensor<4x4xf32, ...> -> tensor<8x4xf32, ...>
      return
    }
    ```
  }];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
}

def ChunkProductsPass : Pass<"partition-chunk-products", "::mlir::ModuleOp"> {
  let summary = "Cuts products in chunks, which travel beside each other's products";
  let description = [{
    Before: local tensors. After: a gather of activations that products read,
    and a sum over ranks of what products make, are `chunks` collectives and
    products each. The first go along samples where each chunk has one, else along
    tokens: a chunk has the same tokens of each rank. No sum changes its order.
    -schedule-overlap lets one chunk travel under the product of another.
    A pair says in its cause what is hidden, or why it was left alone.
    ```mlir
    // meshwork-opt -partition-chunk-products="mode=always chunks=2"
    !x = tensor<1x2x8xf32, #transformer.dims<batch, sequence, embed>>
    !all = tensor<1x4x8xf32, #transformer.dims<batch, sequence, embed>>
    !w = tensor<8x6xf32, #transformer.dims<embed, ffn>>
    !y = tensor<1x4x6xf32, #transformer.dims<batch, sequence, ffn>>
    module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
      func.func @microbatch(%x: !x, %w: !w) -> !y {
        %all = mesh.all_gather %x dim 1 over ["tp"] cause "x" : !x -> !all
        %y = transformer.contract "bse,ef->bsf" %all, %w : !all, !w -> !y
        return %y : !y
      }
    }
    // becomes
    %a = transformer.slice %x dim "sequence" offset 0 : ...
    %0 = mesh.all_gather %a dim 1 over ["tp"] cause ... : tensor<1x1x8xf32, ...> -> tensor<1x2x8xf32, ...>
    %1 = transformer.split %0 dim "sequence" : ...
    %2 = transformer.contract "base,ef->basf" %1, %w ...
    ...
    %y = transformer.merge %joined dim "sequence" : ...
    ```
  }];
  let options = [
    Option<"mode", "mode", "::meshwork::spec::When", "::meshwork::spec::When::useful", "auto: what should gain time; always: all that can; never">,
    Option<"chunks", "chunks", "int64_t", "4", "of each product; 1 leaves all as it is">,
    Option<"machine", "machine", "::meshwork::cost::Machine", "::meshwork::cost::defaultMachine(::meshwork::spec::Device::cpu)", "whose speeds decide what gains time: cpu, cuda, h100x8, ... or all keys of a machine file">];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
}

#endif // MESHWORK_PARTITION_PASSES
