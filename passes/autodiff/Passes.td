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
    DifferentiableOpInterface. Ops behind the head say that they are of the
    backward pass (`transformer.pass`). The module has the flops of a microbatch,
    of all ranks and before any recomputation: `transformer.model_flops` by what
    each op says of itself, and `transformer.palm_attention_flops`, attention by
    PaLM's formula, masked or not.

    ```mlir
    // meshwork-opt -transformer-autodiff
    !ids = tensor<2x4xi32, #transformer.dims<batch, sequence>>
    !x = tensor<2x4x2xf32, #transformer.dims<batch, sequence, embed>>
    !w = tensor<8x2xf32, #transformer.dims<vocab, embed>>
    func.func @loss(%tokens: !ids, %targets: !ids) -> tensor<f32> {
      %w = transformer.parameter "w" init <constant, 1.0> : !w
      %x = transformer.embedding %w, %tokens : !w, !ids -> !x
      %loss = transformer.head_loss %x, %w, %targets scale 1.0 : !x, !w, !ids -> tensor<f32>
      return %loss : tensor<f32>
    }
    // becomes
    %loss, %dx, %dw = transformer.head_loss_grad %x, %w, %targets ...
    transformer.accumulate gradient "w", %dw ...
    %dtable = transformer.embedding_grad %tokens, %dx ...
    transformer.accumulate gradient "w", %dtable ...
    transformer.accumulate loss "", %loss ...
    ```
  }];
}

def BuildUpdatePass : Pass<"transformer-build-update", "::mlir::ModuleOp"> {
  let summary = "Appends @update: global-norm clipping and the optimizer for every parameter";
  let description = [{
    Before: `@microbatch`. After: also `@update`. It reads gradients and what the
    optimizer keeps (`state`), and writes that and the master weights. In mixed
    precision it also writes the weights in the compute type: rounded to nearest
    or, with `rounding=stochastic`, by `stochastic_round` from the stream of the
    parameter's name. What an optimizer keeps and computes is in lib/Optimizer.
    The gradient norm is computed and assigned in any case, and every gradient is
    multiplied by a factor made of it, so no schedule changes weights before the
    norm is known. With `clip-grad-norm` 0 the factor is 1, or NaN where the norm
    is not finite.

    ```mlir
    // meshwork-opt -transformer-build-update="kind=sgd settings=momentum=0.9 compute=bf16"
    func.func @microbatch() {
      %w = transformer.parameter "w" init <constant, 1.0> : tensor<4x8xf32, #transformer.dims<ffn, embed>>
      return
    }
    // becomes
    func.func @update() {
    %g = transformer.state gradient "w" : ...
    ...
    %master = transformer.state master "w" : ...
    %momentum = transformer.state optimizer "w" slot "momentum" : ...
    %new:3 = transformer.map ins(%g, %master, %momentum, ...
    ...
    transformer.assign master "w", %new#0 : ...
    transformer.assign optimizer "w" slot "momentum", %new#1 : ...
    transformer.assign weight "w", %new#2 : tensor<4x8xbf16, ...>
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"adamw\"", "the optimizer, as optimizer.kind names it">,
    ListOption<"settings", "settings", "::meshwork::options::Setting", "numbers of the optimizer that are not its defaults: beta1=0.8">,
    ListOption<"groups", "groups", "::meshwork::spec::OptimizerGroup", "parameters by a glob of their names in files, with factors of the rate and of the decay">,
    Option<"clipGradNorm", "clip-grad-norm", "double", "1.0", "largest global gradient norm; 0: any, but it is computed all the same">,
    Option<"compute", "compute", "::meshwork::spec::Type", "::meshwork::spec::Type::f32", "type of the weights that @microbatch reads: f32 or bf16">,
    Option<"rounding", "rounding", "::meshwork::spec::Rounding", "::meshwork::spec::Rounding::nearest", "of a bf16 weight from its master: nearest or stochastic">];
}

#endif // MESHWORK_AUTODIFF_PASSES
