// Passes that turn a model into one training step.
#ifndef MESHWORK_AUTODIFF_PASSES
#define MESHWORK_AUTODIFF_PASSES
include "mlir/Pass/PassBase.td"

def AutodiffPass : Pass<"transformer-autodiff", "::mlir::ModuleOp"> {
  let summary = "Turns @loss into @microbatch, which accumulates the loss and every gradient";
  let description = [{
    Before: a function `@loss` of tokens and targets in primitive ops. After: a
    function `@microbatch` without result; each parameter's gradient ends in
    `accumulate gradient`, as soon as a part of it is known, and the loss in
    `accumulate loss`.
    Reverse mode over whole tensors, one visit of each op, through
    DifferentiableOpInterface.
  }];
}

def BuildUpdatePass : Pass<"transformer-build-update", "::mlir::ModuleOp"> {
  let summary = "Appends @update: global-norm clipping and the optimizer for every parameter";
  let description = [{
    Before: `@microbatch`. After: also `@update`, which reads gradients and what
    the optimizer keeps as `state` and writes the latter, master weights and, in
    mixed precision, the weights in the compute type, rounded to nearest or,
    with `rounding=stochastic`, by `stochastic_round` from the stream of the
    parameter's name. What an optimizer keeps and computes is in lib/Optimizer.
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"adamw\"", "the optimizer, as optimizer.kind names it">,
    ListOption<"settings", "settings", "::meshwork::options::Setting", "numbers of the optimizer that are not its defaults: beta1=0.8">,
    Option<"clipGradNorm", "clip-grad-norm", "double", "1.0", "largest global gradient norm; 0 for none">,
    Option<"compute", "compute", "::meshwork::spec::Type", "::meshwork::spec::Type::f32", "type of the weights that @microbatch reads: f32 or bf16">,
    Option<"rounding", "rounding", "::meshwork::spec::Rounding", "::meshwork::spec::Rounding::nearest", "of a bf16 weight from its master: nearest or stochastic">];
}

#endif // MESHWORK_AUTODIFF_PASSES
