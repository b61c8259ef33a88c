// Step ops: what turns a model into one training step - state that outlives a
// microbatch, scalars that the launcher gives - and the clusters of fusion.
#ifndef MESHWORK_TRANSFORMER_STEP_OPS
#define MESHWORK_TRANSFORMER_STEP_OPS

include "dialects/transformer/TransformerAttrs.td"
include "dialects/transformer/TransformerInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/RegionKindInterface.td"

def Transformer_StepInputOp : Transformer_Op<"step_input", [Pure]> {
  let summary = "A scalar that the launcher sets before each step or microbatch";
  let description = [{
    (C1) `seed`, `step` and `first_sample` are `tensor<i32>`, the others `tensor<f32>`.
    ```mlir
    %lr = transformer.step_input learning_rate : tensor<f32>
    ```
  }];
  let arguments = (ins Transformer_StepInputAttr:$kind);
  let results = (outs Transformer_Tensor:$result);
  let assemblyFormat = "$kind attr-dict `:` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_StateOp : Transformer_Op<"state", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads what is kept for a parameter, or for the step (empty name)";
  let description = "```mlir\n%m = transformer.state first_moment \"wte.weight\" : tensor<8xf32, #transformer.dims<embed>>\n```";
  let arguments = (ins Transformer_StateKindAttr:$kind, StrAttr:$name);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$kind $name attr-dict `:` type($result)";
}

def Transformer_AssignOp : Transformer_Op<"assign", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes state, or the range of it that a slice would cut out";
  let description = [{
    ```mlir
    transformer.assign first_moment "wte.weight", %m : tensor<8xf32, #transformer.dims<embed>>
    transformer.assign gradient "wpe.weight" dim "positions" offset 0, %g : tensor<4x8xf32, #transformer.dims<sequence, embed>>
    ```
  }];
  let arguments = (ins Transformer_StateKindAttr:$kind, StrAttr:$name, OptionalAttr<StrAttr>:$dim,
                       DefaultValuedAttr<I64Attr, "0">:$offset, Transformer_FloatTensor:$value);
  let assemblyFormat = "$kind $name (`dim` $dim^ `offset` $offset)? `,` $value attr-dict `:` type($value)";
  let builders = [OpBuilder<(ins "StateKind":$kind, "::llvm::StringRef":$name, "::mlir::Value":$value), [{
    build($_builder, $_state, kind, name, ::mlir::StringAttr(), 0, value);
  }]>];
}

def Transformer_AccumulateOp : Transformer_Op<"accumulate", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Adds to state that a step starts at zero";
  let description = "```mlir\ntransformer.accumulate gradient \"wte.weight\", %g : tensor<8xf32, #transformer.dims<embed>>\n```";
  let arguments = (ins Transformer_StateKindAttr:$kind, StrAttr:$name, Transformer_FloatTensor:$value);
  let assemblyFormat = "$kind $name `,` $value attr-dict `:` type($value)";
}

def Transformer_FusedOp : Transformer_Op<"fused", [Pure, IsolatedFromAbove,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A cluster of map, reduce and roll that becomes one kernel";
  let description = [{
    The kernel walks the `rows` (dims, outermost first) and, within each, the
    `cols`; every map in the body runs over rows x cols or a part of them. A
    reduce over all cols gives a value per row, usable at once. A yielded value
    whose result has the dim `chunk` in front of its own is reduced over rows:
    rows are split in that many chunks and each writes its part, for a later
    cluster to add up. That later cluster has no rows, and may reduce an
    operand over its leading dim `chunk` for each column.
    (C1) rows and cols are disjoint; the body has one argument per operand, of its type.
    (C2) a yielded value's type is the result's, or the result's less a leading dim `chunk`,
         the same number of chunks for all.
    (C3) the body holds map, reduce and roll only.
  }];
  let arguments = (ins Variadic<Transformer_Tensor>:$inputs, Transformer_DimsAttr:$rows, Transformer_DimsAttr:$cols);
  let results = (outs Variadic<Transformer_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`rows` $rows `cols` $cols (`ins` `(` $inputs^ `:` type($inputs) `)`)? attr-dict `->` type($results) $body";
  let hasVerifier = 1; // C1 C2 C3
}

def Transformer_ProductOp : Transformer_Op<"product", [Pure, AttrSizedOperandSegments]> {
  let summary = "A contract that does more along the way, as libraries of GPUs can";
  let description = [{
    What `-fusion-fold-epilogues` makes of a contract and of what clusters did with its operands or its result:
    - `gelu`: the function, in its form with tanh, of the sum and the bias; `aux` is what it was applied to.
    - `gelu_grad`: the sum times that function's derivative at `input`.
    - `sum_lhs`, `sum_rhs`: `aux` is the operand, summed over the letters that the product sums: its other
      dims behind a dim `chunk` of one, so that it takes the place of the chunks of a cluster.
    (C1) the equation is as of `contract`, its letters are in two terms each, and the operands are f32 or bf16.
    (C2) a bias, the result's last dims, comes with `gelu` only, `input` with `gelu_grad` and not without.
    (C3) `aux` comes with `gelu`, or not; with sums; its type is the result's, or the sums' as above in the result's elements.
    ```mlir
    %y, %u = transformer.product "se,ef->sf" %x, %w bias %b : tensor<8xf32, #transformer.dims<ffn>> gelu : tensor<4x8xf32, #transformer.dims<sequence, embed>>,
        tensor<8x8xf32, #transformer.dims<embed, ffn>> -> tensor<4x8xf32, #transformer.dims<sequence, ffn>>, tensor<4x8xf32, #transformer.dims<sequence, ffn>>
    ```
  }];
  let arguments = (ins StrAttr:$equation, Transformer_FloatTensor:$lhs, Transformer_FloatTensor:$rhs, Optional<Transformer_FloatTensor>:$bias,
    Optional<Transformer_FloatTensor>:$input, Transformer_EpilogueAttr:$epilogue);
  let results = (outs Transformer_FloatTensor:$result, Optional<Transformer_FloatTensor>:$aux);
  let assemblyFormat = "$equation $lhs `,` $rhs (`bias` $bias^ `:` type($bias))? (`at` $input^ `:` type($input))? $epilogue attr-dict `:` type($lhs) `,` type($rhs) `->` type($result) (`,` type($aux)^)?";
  let hasVerifier = 1; // C1 C2 C3
  let extraClassDeclaration = "uint64_t getFlops();";
}

#endif // MESHWORK_TRANSFORMER_STEP_OPS
