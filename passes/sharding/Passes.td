// Passes that say which rank holds which part of each value.
#ifndef MESHWORK_SHARDING_PASSES
#define MESHWORK_SHARDING_PASSES
include "mlir/Pass/PassBase.td"

def AnnotatePass : Pass<"sharding-annotate", "::mlir::ModuleOp"> {
  let summary = "Writes the spec's mesh, rules and pins as shardings of parameters and inputs";
  let description = [{
    Before: whole tensors, one step. After: the module has `mesh.mesh`; in
    `@microbatch`, parameters and arguments have the sharding that rules give
    their dims, or a pin. With a rule for `residual_sequence`, so has every
    float tensor with the dims `sequence` and `embed`: the residual stream, whose
    sequence these axes split further than those of `sequence` do.
    With a rule for `sequence`, attention is `shared` as `method` says.
    An axis is split into parts where `kv_heads` has fewer heads than ranks.
    Indivisible heads, unknown axes, a pin that fits no parameter: errors, all
    of them at once.
  }];
  let options = [
    ListOption<"axes", "axes", "::meshwork::spec::Axis", "name=size, outermost first">,
    ListOption<"rules", "rules", "::meshwork::spec::ShardRule", "dim=axis or dim=axis/axis, major first">,
    ListOption<"zigzag", "zigzag", "std::string", "axes whose parts of `sequence` lie in zigzag">,
    Option<"method", "method", "std::string", "\"gathered\"", "how ranks with parts of `sequence` compute attention">,
    ListOption<"exchanged", "exchanged", "std::string", "axes of `sequence` whose ranks exchange heads, beside those of another `method`">,
    ListOption<"pins", "pins", "::meshwork::spec::TensorPin", "glob of parameter names, a blank, then a sharding">];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
}

def PropagatePass : Pass<"sharding-propagate", "::mlir::ModuleOp"> {
  let summary = "Gives every value of a function a sharding";
  let description = [{
    Before: some values have `mesh.shardings`. After: all have, closed; nothing
    else changes. README.md says in which order conflicts are decided. Heads that
    the ranks of a sequence cannot exchange (`shared ulysses`) are an error.
  }];
  let options = [Option<"function", "function", "std::string", "\"microbatch\"", "the function to work on">];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
}

def ShardStatesPass : Pass<"sharding-shard-states", "::mlir::ModuleOp"> {
  let summary = "Decides how state is stored: ZeRO as shardings";
  let description = [{
    Before: parameters have shardings, as computing needs them. After: every
    `parameter`, `accumulate`, `assign` and `state` has `mesh.stored`, which
    from stage 1 on splits optimizer state further over `axes`, from stage 2
    gradients, from stage 3 weights. Values read in `@update` have the sharding
    of the optimizer's state.
  }];
  let options = [
    Option<"stage", "stage", "unsigned", "0", "ZeRO stage, 0 to 3">,
    ListOption<"axes", "axes", "std::string", "mesh axes over which state is split, major first">];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
}

#endif // MESHWORK_SHARDING_PASSES
