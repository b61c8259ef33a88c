// Passes that say which rank holds which part of each value.
#ifndef MESHWORK_SHARDING_PASSES
#define MESHWORK_SHARDING_PASSES
include "mlir/Pass/PassBase.td"

def AnnotatePass : Pass<"sharding-annotate", "::mlir::ModuleOp"> {
  let summary = "Writes the spec's mesh, rules and pins as shardings of parameters and inputs";
  let description = [{
    Before: whole tensors, one step. After: the module has `mesh.mesh`; in
    `@microbatch`, parameters and arguments have the sharding that rules give
    their dims, or a pin. With a rule for `residual_sequence`, the residual stream
    has one too: every float tensor with the dim of tokens and the last dim of what
    the head reads (`sequence` and `embed`). The rule's axes split its sequence
    further than those of `sequence` do. With a rule for `sequence`, attention is
    `shared` as `method` says. An axis is split into parts where keys have fewer
    heads than there are ranks. Which dims are heads, of queries or of keys, is what
    attention says of them, whatever they are called. Indivisible heads, unknown
    axes, a pin that fits no parameter: errors, all of them at once.

    ```mlir
    // meshwork-opt -sharding-annotate="axes=dp=2,tp=4 rules=batch=dp,ffn=tp"
    func.func @microbatch(%tokens: tensor<4x8xi32, #transformer.dims<batch, sequence>>) {
      %w = transformer.parameter "w" init <constant, 1.0> : tensor<16x8xf32, #transformer.dims<ffn, embed>>
      return
    }
    // becomes
    module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "tp"=4>} {
    func.func @microbatch(%tokens: ... {mesh.sharding = #mesh.sharding<[{"dp"}, ...]>}) {
    %w = transformer.parameter "w" ... {mesh.shardings = [#mesh.sharding<[{"tp"}, ...]>]} : ...
    ```
  }];
  let options = [
    ListOption<"axes", "axes", "::meshwork::spec::Axis", "name=size, outermost first">,
    ListOption<"rules", "rules", "::meshwork::spec::ShardRule", "dim=axis or dim=axis/axis, major first">,
    ListOption<"zigzag", "zigzag", "std::string", "axes whose parts of `sequence` lie in zigzag">,
    Option<"method", "method", "std::string", "\"gathered\"", "how ranks with parts of `sequence` compute attention">,
    ListOption<"exchanged", "exchanged", "std::string", "axes of `sequence` whose ranks exchange heads, beside those of another `method`">,
    Option<"bound", "bound", "double", "0", "slots for tokens that are exchanged, by how many an even choice of experts needs; 0: tokens are gathered">,
    ListOption<"pins", "pins", "::meshwork::spec::TensorPin", "glob of parameter names, a blank, then a sharding">];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
}

def PropagatePass : Pass<"sharding-propagate", "::mlir::ModuleOp"> {
  let summary = "Gives every value of a function a sharding";
  let description = [{
    Before: some values have `mesh.shardings`. After: all have, closed; nothing
    else changes. README.md says in which order conflicts are decided. Heads that
    the ranks of a sequence cannot exchange (`shared ulysses`) are an error.

    ```mlir
    // meshwork-opt -sharding-propagate
    !x = tensor<8x8xf32, #transformer.dims<sequence, embed>>
    !w = tensor<4x2x8xf32, #transformer.dims<heads, head_dim, embed>>
    !q = tensor<8x4x2xf32, #transformer.dims<sequence, heads, head_dim>>
    module attributes {mesh.mesh = #mesh.mesh<"tp"=2>} {
      func.func @microbatch(%x: !x) {
        %w = transformer.parameter "w" init <constant, 1.0>
            {mesh.shardings = [#mesh.sharding<[{"tp"}, {}, {} ]>]} : !w
        %q = transformer.contract "se,hde->shd" %x, %w : !x, !w -> !q
        return
      }
    }
    // becomes
    %q = transformer.contract ... {mesh.shardings = [#mesh.sharding<[{}, {"tp"}, ...]>]} : ...
    ```
  }];
  let options = [Option<"function", "function", "std::string", "\"microbatch\"", "the function to work on">];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
}

def ShardStatesPass : Pass<"sharding-shard-states", "::mlir::ModuleOp"> {
  let summary = "Decides how state is stored: ZeRO as shardings";
  let description = [{
    Before: parameters have shardings, as computing needs them, and there is
    `@update`. After: every `parameter`, `accumulate`, `assign` and `state` has
    `mesh.stored`. It splits further over `axes`: optimizer state from stage 1 on,
    gradients from stage 2, weights from stage 3. With `whole-gradients` gradients
    stay whole, so that microbatches add up and `@update` reduces. Values read in
    `@update` have the sharding of the optimizer's state.

    ```mlir
    // meshwork-opt -sharding-shard-states="stage=2 axes=dp"
    !w = tensor<16x6xf32, #transformer.dims<ffn, embed>>
    module attributes {mesh.mesh = #mesh.mesh<"dp"=4, "tp"=2>} {
      func.func @microbatch() {
        %w = transformer.parameter "w" init <constant, 1.0>
            {mesh.shardings = [#mesh.sharding<[{"tp"}, {} ]>]} : !w
        transformer.accumulate gradient "w", %w : !w
        return
      }
      func.func @update() { return }
    }
    // becomes
    %w = transformer.parameter "w" ... mesh.stored = #mesh.sharding<[{"tp"}, ...]>} : ...
    transformer.accumulate gradient "w", %w {mesh.stored = #mesh.sharding<[{"tp", "dp"}, ...]>} : ...
    ```
  }];
  let options = [
    Option<"stage", "stage", "unsigned", "0", "ZeRO stage, 0 to 3">,
    Option<"wholeGradients", "whole-gradients", "bool", "false", "whether gradients stay whole until the update, whatever the stage">,
    ListOption<"axes", "axes", "std::string", "mesh axes over which state is split, major first">];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
}

#endif // MESHWORK_SHARDING_PASSES
