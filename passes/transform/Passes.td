// Passes that prepare a model: sizes, primitives, precision.
#ifndef MESHWORK_TRANSFORM_PASSES
#define MESHWORK_TRANSFORM_PASSES
include "mlir/Pass/PassBase.td"

def BindPass : Pass<"transformer-bind", "::mlir::ModuleOp"> {
  let summary = "Gives the open dims `batch` and `sequence` their sizes";
  let description = [{
    Before: dims named `batch` and `sequence` may be open (`?`). After: every type
    is static. Every `head_loss` is scaled to a mean over the tokens of a
    microbatch. The result of `@loss` is divided by the microbatches of a step, so
    that their sum is the mean. With `counts-targets` it is left to
    -transformer-count-targets to divide by the tokens of a step.

    ```mlir
    // meshwork-opt -transformer-bind="batch=4 sequence=16 microbatches=2"
    !ids = tensor<?x?xi32, #transformer.dims<batch, sequence>>
    !x = tensor<?x?x2xf32, #transformer.dims<batch, sequence, embed>>
    !w = tensor<8x2xf32, #transformer.dims<vocab, embed>>
    func.func @loss(%targets: !ids, %x: !x, %w: !w) -> tensor<f32> {
      %loss = transformer.head_loss %x, %w, %targets scale 1.0 : !x, !w, !ids -> tensor<f32>
      return %loss : tensor<f32>
    }
    // becomes
    func.func @loss(%targets: tensor<4x16xi32, ...>, %x: tensor<4x16x2xf32, ...>, %w: ...
    %loss = transformer.head_loss %x, %w, %targets scale 7.812500e-03 : ...
    ```
  }];
  let options = [
    Option<"batch", "batch", "int64_t", "0", "sequences of one microbatch, over all data-parallel ranks">,
    Option<"sequence", "sequence", "int64_t", "0", "tokens of one sequence">,
    Option<"microbatches", "microbatches", "int64_t", "1", "microbatches of a step">,
    Option<"countsTargets", "counts-targets", "bool", "false", "the mean is over the targets that a step counts">];
}

def SeparateDocumentsPass : Pass<"transformer-separate-documents", "::mlir::ModuleOp"> {
  let summary = "Keeps attention within the documents of a sequence";
  let description = [{
    Before: `@loss` of tokens and targets. After: it has a third argument, i32
    of the same shape: at which position of the sequence the document of each
    token begins. Each `attention` reads it, and must be causal.

    ```mlir
    // meshwork-opt -transformer-separate-documents
    !ids = tensor<2x8xi32, #transformer.dims<batch, sequence>>
    !q = tensor<2x8x4x2xf32, #transformer.dims<batch, sequence, heads, head_dim>>
    !lse = tensor<2x4x8xf32, #transformer.dims<batch, heads, sequence>>
    func.func @loss(%tokens: !ids, %targets: !ids) {
      %q = transformer.parameter "q" init <constant, 1.0> : !q
      %o, %lse = transformer.attention %q, %q, %q causal scale 0.5 : !q, !q, !q -> !q, !lse
      return
    }
    // becomes
    func.func @loss(%tokens: ..., %targets: ..., %begins: tensor<2x8xi32, ...>) {
    ...
    %o, %lse = transformer.attention %q, %q, %q documents(%begins : ...) causal ...
    ```
  }];
}

def CountTargetsPass : Pass<"transformer-count-targets", "::mlir::ModuleOp"> {
  let summary = "Leaves targets of other documents out of the loss";
  let description = [{
    Before: `-transformer-bind{counts-targets=true}`. After: the targets of
    `@loss` are its `inner_targets`, -1 where they are of another document, and
    it has an argument `target_counts`, f32 [batch]: how many targets the step
    counts in each of the samples. Each `head_loss` is divided by their sum.

    ```mlir
    // meshwork-opt -transformer-count-targets
    !ids = tensor<2x8xi32, #transformer.dims<batch, sequence>>
    !x = tensor<2x8x4xf32, #transformer.dims<batch, sequence, embed>>
    !w = tensor<16x4xf32, #transformer.dims<vocab, embed>>
    func.func @loss(%tokens: !ids, %targets: !ids, %x: !x, %w: !w) -> tensor<f32> {
      %loss = transformer.head_loss %x, %w, %targets scale 1.0 : !x, !w, !ids -> tensor<f32>
      return %loss : tensor<f32>
    }
    // becomes
    func.func @loss(%tokens: ..., %targets: ... "inner_targets"}, ... %counts: tensor<2xf32, ...
    %sum = transformer.reduce add %counts over ...
    %loss = transformer.head_loss %x, %w, %targets counted(%sum : tensor<f32>) scale 1.000000e+00 : ...
    ```
  }];
}

def RestartPositionsPass : Pass<"transformer-restart-positions", "::mlir::ModuleOp"> {
  let summary = "Begins positions anew with each document";
  let description = [{
    Before: primitive ops. After: `@loss` has an argument
    `document_positions`, i32 [batch, sequence]: which token of its document
    each is. What had a row for each position of the sequence, a rotary table or
    a slice that makes a table's rows the sequence, has rows looked up by it.

    ```mlir
    // meshwork-opt -transformer-restart-positions
    !ids = tensor<2x8xi32, #transformer.dims<batch, sequence>>
    !x = tensor<2x8x4xf32, #transformer.dims<batch, sequence, head_dim>>
    !table = tensor<8x4xf32, #transformer.dims<sequence, head_dim>>
    func.func @loss(%tokens: !ids, %targets: !ids, %x: !x) {
      %cos, %sin = transformer.rotary_table inverse_frequencies [1.0, 0.5] scale 1.0 : !table
      %y = transformer.map ins(%x, %cos : !x, !table) -> !x {
        ^bb0(%a: f32, %b: f32): transformer.yield %b : f32
      }
      return
    }
    // becomes
    func.func @loss(%tokens: ..., %targets: ..., %x: ..., %positions: ... "document_positions"}) {
    %cos, %sin = transformer.rotary_table ...
    %rows = transformer.embedding %cos, %positions : ...
    ...
    %y = transformer.map ins(%x, %rows : ...
    ```
  }];
}

def RouterLossesPass : Pass<"transformer-router-losses", "::mlir::ModuleOp"> {
  let summary = "Adds losses that make routers choose experts evenly";
  let description = [{
    Before: `-transformer-bind`. After: `@loss` has an `auxiliary_loss` for each loss that has a coefficient.
    Of E experts, f is how often each was chosen by the tokens of a group of sequences, by how many tokens these are, and P the
    mean of its softmax over them. The balance loss is E times the sum of f P: k where
    each token chooses k and all experts equally often. Of the `model`, f and P are first averaged over layers (as
    Hugging Face's classes do); of a `layer`, the losses of layers are averaged. The z-loss is the mean over layers and
    tokens of the square of log-sum-exp of the scores. Both are means over the step.

    ```mlir
    // meshwork-opt -transformer-router-losses="balance-coefficient=0.01"
    !ids = tensor<2x8xi32, #transformer.dims<batch, sequence>>
    !x = tensor<2x8x4xf32, #transformer.dims<batch, sequence, embed>>
    !s = tensor<2x8x4xf32, #transformer.dims<batch, sequence, routed>>
    !c = tensor<2x8x2xf32, #transformer.dims<batch, sequence, choices>>
    !n = tensor<2x8x2xi32, #transformer.dims<batch, sequence, choices>>
    !w = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
    !d = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
    func.func @loss(%tokens: !ids, %targets: !ids, %x: !x, %s: !s, %w: !w, %d: !d) -> !x {
      %choices = transformer.top_k %s : !s -> !n
      %weights = transformer.pick %s at %choices : !s, !n -> !c
      %y = transformer.experts silu %x, %choices, %weights gate %w up %w down %d : !x, !n, !c, !w, !d
      return %y : !x
    }
    // becomes
    %ones = transformer.map ...
    ...
    %chosen = transformer.pick_grad %ones at %choices : ...
    ...
    %f = transformer.contract "abc,ab->ac" %chosen, ...
    %scores = transformer.softmax %s : ...
    ...
    %p = transformer.contract "abc,ab->ac" %scores, ...
    %terms = transformer.map ins(%f, %p : ...
    ...
    %sum = transformer.reduce add %terms over ...
    transformer.auxiliary_loss "balance_loss" coefficient 1.000000e-02, %sum : tensor<f32>
    ```
  }];
  let options = [
    Option<"balance", "balance", "::meshwork::spec::Balance", "::meshwork::spec::Balance::ofModel", "model, layer or none">,
    Option<"balanceCoefficient", "balance-coefficient", "double", "-1", "of the balance loss; below 0: the model's own">,
    Option<"zCoefficient", "z-coefficient", "double", "0", "of the router's z-loss">,
    Option<"group", "group", "int64_t", "1", "samples, one behind the other, over which balance is counted">,
    Option<"microbatches", "microbatches", "int64_t", "1", "microbatches of a step">];
}

def LimitChoicesPass : Pass<"transformer-limit-choices", "::mlir::ModuleOp"> {
  let summary = "Gives experts room for so many choices, and drops the others";
  let description = [{
    Before: `-transformer-bind`. After: `experts` take choices from a `limit_choices`. Of each group, so many samples one behind the
    other, an expert has room for ceil(capacity k T / E) choices, of T tokens in a group that choose k of E experts. First choices of all
    tokens get room first, then second ones. What finds none is dropped: the token does without this expert, its other weights stay as they are.
    Experts that have room for every token are left alone.

    ```mlir
    // meshwork-opt -transformer-limit-choices="capacity=1.0"
    !ids = tensor<2x8xi32, #transformer.dims<batch, sequence>>
    !x = tensor<2x8x4xf32, #transformer.dims<batch, sequence, embed>>
    !s = tensor<2x8x4xf32, #transformer.dims<batch, sequence, routed>>
    !c = tensor<2x8x2xf32, #transformer.dims<batch, sequence, choices>>
    !n = tensor<2x8x2xi32, #transformer.dims<batch, sequence, choices>>
    !w = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
    !d = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
    func.func @loss(%tokens: !ids, %targets: !ids, %x: !x, %s: !s, %w: !w, %d: !d) -> !x {
      %choices = transformer.top_k %s : !s -> !n
      %weights = transformer.pick %s at %choices : !s, !n -> !c
      %y = transformer.experts silu %x, %choices, %weights gate %w up %w down %d : !x, !n, !c, !w, !d
      return %y : !x
    }
    // becomes
    %choices = transformer.top_k ...
    %weights = transformer.pick %s at %choices : ...
    %kept = transformer.limit_choices %choices experts 4 most 4 : ...
    %y = transformer.experts silu %x, %kept, %weights gate %w up %w down %d capacity 4 group 1 : ...
    ```
  }];
  let options = [
    Option<"capacity", "capacity", "double", "0", "room of an expert, by how many choices it gets when all are chosen evenly; 0: for all">,
    Option<"group", "group", "int64_t", "1", "samples that share an expert's room">];
}

def CountChoicesPass : Pass<"transformer-count-choices", "::mlir::ModuleOp"> {
  let summary = "Counts how often each expert is chosen in a step";
  let description = [{
    Before: `-transformer-build-update`, and `experts` whose choices are made of scores. After: `@microbatch` adds to the
    metric `expert_counts`, i32 [routers, candidates], where choices are made; padding, a negative choice, is not counted.
    `@update` makes the metric `expert_load` of it: for each router the count of the expert chosen most often, the mean, and that of
    the one chosen least. A router with fewer experts than others has zeros behind them.
    With a rate, an `untrained` parameter that is added to a router's scores grows by it where an expert was chosen less
    often than the mean. It shrinks by it where more often. Both wait for the norm of the gradients.
    Where choices are limited, the metric `dropped` is for each router how many choices found no room. Beside a balance loss,
    `balance_at_even` is what that is where all experts are chosen equally often: the choices of a token.

    ```mlir
    // meshwork-opt -transformer-count-choices
    !x = tensor<2x8x4xf32, #transformer.dims<batch, sequence, embed>>
    !s = tensor<2x8x4xf32, #transformer.dims<batch, sequence, routed>>
    !c = tensor<2x8x2xf32, #transformer.dims<batch, sequence, choices>>
    !n = tensor<2x8x2xi32, #transformer.dims<batch, sequence, choices>>
    !w = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
    !d = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
    func.func @microbatch(%x: !x, %s: !s, %w: !w, %d: !d) -> !x {
      %choices = transformer.top_k %s : !s -> !n
      %weights = transformer.pick %s at %choices : !s, !n -> !c
      %y = transformer.experts silu %x, %choices, %weights gate %w up %w down %d : !x, !n, !c, !w, !d
      return %y : !x
    }
    func.func @update() {
      %loss = transformer.state loss "" : tensor<f32>
      transformer.assign loss "", %loss : tensor<f32>
      return
    }
    // becomes
    %choices = transformer.top_k ...
    %ones = transformer.map ...
    ...
    %chosen = transformer.pick_grad %ones at %choices : ...
    ...
    %counts = transformer.contract "abc,ab->c" %chosen, ...
    %own = transformer.unslice %counts dim "candidates" offsets [0] : ...
    %all = transformer.unslice %own dim "routers" offsets [0] : ...
    transformer.accumulate metric "expert_counts" exact, %all : ...
    ...
    func.func @update() {
      ...
      %sum = transformer.state metric "expert_counts" : tensor<1x4xi32, ...
      ...
      transformer.assign metric "expert_load", ...
    ```
  }];
  let options = [Option<"biasRate", "bias-rate", "double", "0", "what a step adds to a bias by which experts are chosen, or takes from it">];
}

def DecomposePass : Pass<"transformer-decompose", "::mlir::ModuleOp"> {
  let summary = "Replaces model ops by primitive ops";
  let description = [{
    Before: any transformer ops. After: ops of a layer say so
    (`transformer.layer`), following the parameters that they read, and `rms_norm`, `layer_norm`, `rope`,
    `dropout`, `activate`, `add`, `sub` and `mul` are gone; what they were is
    `map`, `reduce`, `roll` and `rotary_table`. What draws, a `map` that was
    `dropout` or an `attention` with a dropout rate, reads the step's seed, its
    number and its first sample, each a `step_input`.

    ```mlir
    // meshwork-opt -transformer-decompose
    !x = tensor<4x8xf32, #transformer.dims<sequence, embed>>
    !w = tensor<8xf32, #transformer.dims<embed>>
    func.func @loss(%x: !x, %w: !w) -> !x {
      %y = transformer.rms_norm %x, %w epsilon 1.0e-6 : !x, !w
      return %y : !x
    }
    // becomes
    %squares = transformer.map ins(%x : ...
    ...
    %sum = transformer.reduce add %squares over ...
    %y = transformer.map ins(%x, %sum, %w : ...
    ...
    return %y : ...
    ```
  }];
}

def CheckDevicePass : Pass<"transformer-check-device", "::mlir::ModuleOp"> {
  let summary = "Refuses what a GPU has no kernel for";
  let description = [{
    Before: primitive ops with sizes. After: the same, or errors at the keys of
    the spec: one for each limit of `include/meshwork/Plan/Gpu.h` and each size
    above it. All that a GPU cannot do is told at once.
    The example has one at `target.device`, and nothing comes out.

    ```mlir
    // meshwork-opt -transformer-check-device -verify-diagnostics
    !q = tensor<1x8x2x512xf32, #transformer.dims<batch, sequence, heads, head_dim>>
    !lse = tensor<1x2x8xf32, #transformer.dims<batch, heads, sequence>>
    func.func @loss(%q: !q) {
      // expected-error@+1 {{attention takes a head_dim of at most 256, and the model has 512}}
      %o, %lse = transformer.attention %q, %q, %q causal scale 0.5 : !q, !q, !q -> !q, !lse
      return
    }
    // becomes
    ```
  }];
}

def PrecisionPass : Pass<"transformer-precision", "::mlir::ModuleOp"> {
  let summary = "Stores tensors in the compute type";
  let description = [{
    Before: float tensors are f32. After: those with dims are bf16 if `compute`
    says so. Sums (`reduce`), rotary tables and log-sum-exps stay f32, and so does
    what an op reads in f32, back to the products that it is made of. Bodies still
    compute in f32. Gradients that are kept have the type `gradients`, noted on
    the module as `transformer.gradient_type`. The rest of `@update` stays f32.

    ```mlir
    // meshwork-opt -transformer-precision="compute=bf16 gradients=bf16"
    !w = tensor<4x8xf32, #transformer.dims<ffn, embed>>
    func.func @microbatch() {
      %w = transformer.parameter "w" init <constant, 1.0> : !w
      %sum = transformer.reduce add %w over <embed> : !w -> tensor<4xf32, #transformer.dims<ffn>>
      return
    }
    // becomes
    module attributes {transformer.gradient_type = bf16} {
    func.func @microbatch() {
    %w = transformer.parameter "w" ... : tensor<4x8xbf16, ...>
    %sum = transformer.reduce add %w over ... -> tensor<4xf32, ...>
    ```
  }];
  let options = [
    Option<"compute", "compute", "::meshwork::spec::Type", "::meshwork::spec::Type::f32", "f32 or bf16">,
    Option<"gradients", "gradients", "::meshwork::spec::Type", "::meshwork::spec::Type::f32", "f32 or bf16">];
}

def QuantizePass : Pass<"transformer-quantize", "::mlir::ModuleOp"> {
  let summary = "Lets the products of linear layers multiply in FP8";
  let description = [{
    Before: `@microbatch`, with the types that are stored. After: a `contract`
    with a parameter, and those of its gradients, read f8 where each rank's
    sizes are multiples of 16. A `map` scales and rounds each operand, with the
    summed dims last: a gradient to e5m2, all else to e4m3. The sum is scaled back.
    The scale is a power of two, from the operand's largest magnitude (a `reduce
    max`). With `delayed`, activations and gradients take the largest magnitude
    of the steps before, which the parameter's optimizer keeps.
    With `weights-per-step` scale and copies of a parameter are made once for
    all its products, and are of the step (`transformer.of_step`).
    `experts` of parameters read operands that are rounded and scaled back. They
    also get scales from the steps before, for the rows that they round.

    ```mlir
    // meshwork-opt -transformer-quantize
    !x = tensor<32x16xbf16, #transformer.dims<sequence, embed>>
    !w = tensor<16x16xbf16, #transformer.dims<ffn, embed>>
    !y = tensor<32x16xbf16, #transformer.dims<sequence, ffn>>
    func.func @microbatch(%x: !x) {
      %w = transformer.parameter "w" init <constant, 1.0> : !w
      %y = transformer.contract "te,fe->tf" %x, %w : !x, !w -> !y
      return
    }
    // becomes
    %qx = transformer.map ins(%x, %sx#0 : ... -> tensor<32x16xf8E4M3FN, ...
    ...
    %qw = transformer.map ins(%w, %sw#0 : ... -> tensor<16x16xf8E4M3FN, ...
    ...
    %y = transformer.contract "te,fe->tf" %qx, %qw scaled %sx#1, %sw#1 : ...
    ```
  }];
  let options = [
    ListOption<"splits", "splits", "::meshwork::options::DimSplit", "dims that ranks share, like ffn=2: a rank's size of them counts">,
    Option<"delayed", "delayed", "bool", "false", "whether scales of activations and gradients come from the steps before">,
    Option<"targets", "targets", "int64_t", "1", "targets of a step: gradients of the first are about one part in so many">,
    Option<"tiles", "tiles", "bool", "false", "whether the kernel that makes a tensor and finds its maximum can make a transposed copy, too">,
    Option<"weightsPerStep", "weights-per-step", "bool", "false", "whether parameters are rounded once a step">];
}

def QuantizeWeightsPass : Pass<"transformer-quantize-weights", "::mlir::ModuleOp"> {
  let summary = "Rounds matrices to 8 bits once a step, which gathers then move";
  let description = [{
    Before: `@microbatch`, with the types that are stored. After: matrices are
    rounded to 8 bits once a step (`transformer.of_step`). What read them reads
    what the 8 bits stand for, which a `map` makes for each layer and pass.
    Matrices are parameters of two or more dims that not only maps read, as they
    read biases. `f8E4M3FN` has one scale for the tensor, a power of two, as
    `-transformer-quantize` has it. `i8` has one for each row along the last
    dim: the row's largest magnitude over 127. Where a step reads a product in
    f32, as of a router, its weight stays as it is.

    ```mlir
    // meshwork-opt -transformer-quantize-weights
    !x = tensor<4x8xbf16, #transformer.dims<sequence, embed>>
    !w = tensor<16x8xbf16, #transformer.dims<ffn, embed>>
    !y = tensor<4x16xbf16, #transformer.dims<sequence, ffn>>
    func.func @microbatch(%x: !x) {
      %w = transformer.parameter "w" init <constant, 1.0> : !w
      %y = transformer.contract "te,fe->tf" %x, %w : !x, !w -> !y
      return
    }
    // becomes
    %q = transformer.map ins(%w, %s#0 : ... -> tensor<16x8xi8, ...
    ...
    %r = transformer.map ins(%q, %s#1 : ... -> tensor<16x8xbf16, ...
    ...
    %y = transformer.contract "te,fe->tf" %x, %r ...
    ```
  }];
  let options = [
    Option<"type", "type", "::meshwork::spec::WeightType", "::meshwork::spec::WeightType::int8", "fp8 or int8; compute leaves all as it is">];
}

def QuantizeGradientsPass : Pass<"transformer-quantize-gradients", "::mlir::ModuleOp"> {
  let summary = "Reduces gradients in 8 or 4 bits";
  let description = [{
    Before: local tensors, and `mesh.reduce_scatter` of gradients. After: those
    of matrices are `mesh.all_to_all` of 8-bit numbers and of their scales.
    What each rank receives is made f32 again and added up in the order of
    ranks. So numbers are rounded once, and not for each rank on the way.

    The last dim that the sum does not split is cut into blocks, of the largest
    divisor up to `block`, or the next above where that is below 16. A block's scale is its largest magnitude over 127, or
    over 7 with `int4`, where two numbers travel in a byte. Where the dim has no
    even divisor, 8 bits travel.

    With `inner`, the sum goes over these axes first; what it makes is rounded
    again and added up over the others. Where the parts of the two sums would
    not be those of one, there is one over all.

    With `tell-error` a step tells the metric `gradient_error`: the square root
    of what all ranks' rounding errors give when they are squared and added up.
    So it is the norm of what rounding changes in the gradient, as far as errors
    have nothing to do with each other. Each rank adds up those of its own sums,
    over microbatches too; the numbers are summed over ranks once a step. Ranks
    that round the same numbers count once.

    Source: Wang et al., ZeRO++ (arXiv 2306.10209), section 3.3.

    ```mlir
    // meshwork-opt -transformer-quantize-gradients=block=16
    !g = tensor<8x32xf32, #transformer.dims<ffn, embed>>
    !p = tensor<4x32xf32, #transformer.dims<ffn, embed>>
    module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
      func.func @update() {
        %g = transformer.state gradient "w" : !g
        %s = mesh.reduce_scatter %g sum dim 0 over ["dp"] cause "w" : !g -> !p
        transformer.assign gradient "w", %s : !p
        return
      }
    }
    // becomes
    %b = transformer.split %g dim "embed" : ... -> tensor<8x2x16xf32, ...
    ...
    %q = mesh.all_to_all %c gather 0 split 1 over ["dp"] ... -> tensor<4x4x16xi8, ...
    ...
    %s = transformer.merge ...
    ```
  }];
  let options = [
    Option<"type", "type", "::meshwork::spec::GradientType", "::meshwork::spec::GradientType::int8", "int8 or int4; precision leaves all as it is">,
    Option<"block", "block", "int64_t", "256", "elements with one scale, at most">,
    ListOption<"inner", "inner", "std::string", "axes that are summed over first">,
    Option<"tellError", "tell-error", "bool", "false", "a metric tells what rounding changes">,
    Option<"stages", "stages", "std::string", "", "the axis that layers will be shared out over">];
}

def ExpandHeadPass : Pass<"transformer-expand-head", "::mlir::ModuleOp"> {
  let summary = "Replaces head_loss_grad by chunks of tokens";
  let description = [{
    Before: `head_loss_grad`. After: for each chunk of tokens a product, a
    softmax cross-entropy and two products, so that logits exist for one chunk
    only. Equal chunks behind the first are one `repeat`. Where the weight's
    gradient is kept in bf16 and would be rounded after more than
    `rounded-chunks` of them, they are summed in f32 and rounded once.

    ```mlir
    // meshwork-opt -transformer-expand-head="chunk=4"
    !x = tensor<12x4xf32, #transformer.dims<sequence, embed>>
    !w = tensor<32x4xf32, #transformer.dims<vocab, embed>>
    !ids = tensor<12xi32, #transformer.dims<sequence>>
    func.func @microbatch(%x: !x, %w: !w, %targets: !ids) {
      %loss, %dx, %dw = transformer.head_loss_grad %x, %w, %targets scale 1.0
          : !x, !w, !ids -> tensor<f32>, !x, !w
      transformer.accumulate gradient "w", %dw : !w
      return
    }
    // becomes
    %logits = transformer.contract "az,vz->av" %chunk, %w ... -> tensor<4x32xf32, ...>
    ...
    %dw = transformer.contract "av,az->vz" %dlogits, %chunk : ...
    transformer.accumulate gradient "w", %dw : ...
    ...
    %rest:2 = transformer.repeat 2 over "sequence" ...
    ```
  }];
  let dependentDialects = ["::meshwork::mesh::MeshDialect"];
  let options = [
    Option<"chunk", "chunk", "int64_t", "256", "tokens of one chunk">,
    Option<"roundedChunks", "rounded-chunks", "int64_t", "1", "chunks that may be added up in bf16">];
}

def ExpandExpertsPass : Pass<"transformer-expand-experts", "::mlir::ModuleOp"> {
  let summary = "Replaces experts and their gradients by sorted rows and grouped products";
  let description = [{
    Before: `experts` and `experts_grad`, of a rank's tokens and experts. After: choices sorted by expert, rows taken in that
    order, a product for each expert's rows, and their sum for each token. Both passes build the same rows; the backward
    pass takes those of the forward pass, so that memory and recompute decide what is kept.
    Where tokens are exchanged, they are assigned to slots of the ranks that have their experts. In the first round each rank
    sends what is in its slots, computes on what it gets, and sends the sums back. What has no slot is left to `expert_rounds`.

    ```mlir
    // meshwork-opt -transformer-expand-experts
    !x = tensor<6x4xf32, #transformer.dims<sequence, embed>>
    !c = tensor<6x2xi32, #transformer.dims<sequence, choices>>
    !p = tensor<6x2xf32, #transformer.dims<sequence, choices>>
    !up = tensor<3x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
    !down = tensor<3x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
    func.func @microbatch(%x: !x, %c: !c, %p: !p, %g: !up, %u: !up, %d: !down) -> !x {
      %y = transformer.experts silu %x, %c, %p gate %g up %u down %d : !x, !c, !p, !up, !down
      return %y : !x
    }
    // becomes
    %order, %tokens, %places, %begins = transformer.sort_rows %c : ... -> tensor<12xi32, ...
    %rows = transformer.take_rows %x at %tokens : ... -> tensor<12x4xf32, ...
    ...
    %gate = transformer.grouped_product %rows, %g by %begins : ...
    ...
    %y = transformer.combine_rows %down at %places of %c : ... -> tensor<6x4xf32, ...
    ```
  }];
}

def ExpandRoundsPass : Pass<"transformer-expand-rounds", "::mlir::ModuleOp"> {
  let summary = "Replaces further rounds of an exchange by a counted repeat";
  let description = [{
    Before: `expert_rounds`. After: a repeat that sends the tokens in the slots of a round, computes on what comes, and sends it
    back. It runs as often as the rank needs that needs the most. A gradient of weights that is only accumulated is so in each turn.

    With `one-word` and two exchanges or more, the forward pass runs with one round of each, and again with all rounds where one number
    says that some rank needs them. The backward pass goes by the same number. In a pipeline each forward list of a stage has one.

    ```mlir
    // meshwork-opt -transformer-expand-rounds
    !x = tensor<6x4xf32, #transformer.dims<sequence, embed>>
    !c = tensor<6x2xi32, #transformer.dims<sequence, choices>>
    !p = tensor<6x2xf32, #transformer.dims<sequence, choices>>
    !up = tensor<4x8x4xf32, #transformer.dims<experts, expert_ffn, embed>>
    !down = tensor<4x4x8xf32, #transformer.dims<experts, embed, expert_ffn>>
    !slots = tensor<4x5xi32, #transformer.dims<sequence, slots>>
    !places = tensor<12x2xi32, #transformer.dims<sequence, choices>>
    module attributes {mesh.mesh = #mesh.mesh<"ep" = 2>} {
      func.func @microbatch(%x: !x, %c: !c, %p: !p, %g: !up, %u: !up, %d: !down, %y: !x) -> !x {
        %first = mesh.coordinate over ["ep"] of 8 : tensor<i32>
        %s, %r, %pl, %n = transformer.assign_slots %c experts 4 most 6 : !c -> !slots, !c, !places, tensor<i32>
        %all = transformer.expert_rounds silu %x, %c, %p gate %g up %u down %d from %first of 8 rows 12 slots %s, %pl of %r last %n over ["ep"] to %y
          : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
        return %all : !x
      }
    }
    // becomes
    %turns = mesh.all_reduce %last max over ["ep"] ...
    %of_round = transformer.slice %slots dim "sequence" offset 2 : ... -> tensor<2x5xi32, ...
    ...
    %all = transformer.repeat 1 over "sequence" counted %turns : tensor<i32> cut(%of_round, ...
    ...
    %there = mesh.all_to_all %taken gather 1 split 0 over ["ep"] ...
    ...
    %back = mesh.all_to_all %sums gather 0 split 1 over ["ep"] ...
    ```
  }];
  let options = [
    Option<"oneWord", "one-word", "bool", "false", "ask once a forward pass whether any exchange has further rounds, not once a layer">
  ];
}

#endif // MESHWORK_TRANSFORM_PASSES
