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
  let summary = "Appends @update: global-norm clipping and AdamW for every parameter";
  let description = [{
    Before: `@microbatch`. After: also `@update`, which reads gradients and
    moments as `state` and writes moments, master weights and, in mixed
    precision, the weights in the compute type, rounded to nearest or, with
    `rounding=stochastic`, by `stochastic_round` from the stream of the
    parameter's name.
  }];
  let options = [
    Option<"beta1", "beta1", "double", "0.9", "decay of the first moment">,
    Option<"beta2", "beta2", "double", "0.95", "decay of the second moment">,
    Option<"epsilon", "epsilon", "double", "1e-8", "added to the root of the second moment">,
    Option<"weightDecay", "weight-decay", "double", "0.1", "decoupled decay of tensors with two or more dims in files">,
    Option<"clipGradNorm", "clip-grad-norm", "double", "1.0", "largest global gradient norm; 0 for none">,
    Option<"compute", "compute", "std::string", "\"f32\"", "type of the weights that @microbatch reads: f32 or bf16">,
    Option<"rounding", "rounding", "std::string", "\"nearest\"", "of a bf16 weight from its master: nearest or stochastic">];
}

#endif // MESHWORK_AUTODIFF_PASSES
