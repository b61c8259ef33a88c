// Step ops: what turns a model into one training step - state that outlives a
// microbatch, scalars that the launcher gives - and the clusters of fusion.
#ifndef MESHWORK_TRANSFORMER_STEP_OPS
#define MESHWORK_TRANSFORMER_STEP_OPS

include "dialects/transformer/TransformerAttrs.td"
include "dialects/transformer/TransformerInterfaces.td"
include "dialects/transformer/TransformerModelOps.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/RegionKindInterface.td"

def Transformer_StepInputOp : Transformer_KeptOp<"step_input", [], [Transformer_StateUse<"none">, Transformer_Source<"true">, Transformer_TakesPadding, Transformer_LeavesPadding<"any">, Pure, Transformer_StaysF32<"false">, Transformer_WeightGradient<"none">]> {
  let summary = "A scalar that the launcher sets before each step or microbatch";
  let description = [{
    `bias_correction` is 1 - base^t in the t-th optimizer step, counted from 1.
    (C1) `seed`, `step` and `first_sample` are `tensor<i32>`, the others `tensor<f32>`.
    (C2) `bias_correction`, and nothing else, has a base, from 0 to below 1.
    ```mlir
    %lr = transformer.step_input learning_rate : tensor<f32>
    %c = transformer.step_input bias_correction base 0.9 : tensor<f32>
    ```
  }];
  let arguments = (ins Transformer_StepInputAttr:$kind, OptionalAttr<F64Attr>:$base);
  let results = (outs Transformer_Tensor:$result);
  let assemblyFormat = "$kind (`base` $base^)? attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "StepInput":$kind), [{
    build($_builder, $_state, result, kind, ::mlir::FloatAttr());
  }]>];
  let hasVerifier = 1; // C1 C2
}

def Transformer_StageListOp : Transformer_Op<"stage_list"> {
  let summary = "What follows, up to the next one, is a list of a pipeline's stage";
  let description = [{
    Between two lists the rank works on other microbatches.
    (C1) the stage is not negative, and below 65536.
    ```mlir
    transformer.stage_list forward stage 2
    ```
  }];
  let arguments = (ins Transformer_StageListAttr:$kind, I64Attr:$stage);
  let assemblyFormat = "$kind `stage` $stage attr-dict";
  let hasVerifier = 1; // C1
}

def Transformer_StateOp : Transformer_KeptOp<"state", [], [Transformer_StateUse<"reads">, Transformer_Source<"false">, Transformer_TakesPadding, Transformer_LeavesPadding<"zero">, MemoryEffects<[MemRead]>, Transformer_StaysF32<"true">, Transformer_WeightGradient<"none">]> {
  let summary = "Reads what is kept for a parameter, or for the step: under its own name for a `metric`, else under none";
  let description = [{
    An optimizer keeps what it likes, each under a name: `slot`. Its elements are
    `initial`, or 0, before the first step. A `magnitude` is the largest one of a
    tensor so far in the step, which products of the parameter have a slot for.
    (C1) `optimizer` and `magnitude`, and nothing else, have a slot: lower-case letters, digits and _, a letter first, at most 32.
    (C2) only `optimizer` has an initial value, which is finite.
    (C3) only a `metric` is of i32.
    ```mlir
    %g = transformer.state gradient "wte.weight" : tensor<8xf32, #transformer.dims<embed>>
    %m = transformer.state optimizer "wte.weight" slot "first_moment" : tensor<8xf32, #transformer.dims<embed>>
    %s = transformer.state optimizer "wte.weight" slot "squares" initially 1.0 : tensor<8xf32, #transformer.dims<embed>>
    ```
  }];
  let arguments = (ins Transformer_StateKindAttr:$kind, StrAttr:$name, OptionalAttr<StrAttr>:$slot, OptionalAttr<F32Attr>:$initial);
  let results = (outs Transformer_KeptTensor:$result);
  let assemblyFormat = "$kind $name (`slot` $slot^)? (`initially` $initial^)? attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "const StateKey &":$key, CArg<"float", "0">:$initial), [{
    build($_builder, $_state, result, key.kind, key.name, key.slot.empty() ? ::mlir::StringAttr() : $_builder.getStringAttr(key.slot),
          initial == 0 ? ::mlir::FloatAttr() : $_builder.getF32FloatAttr(initial));
  }]>];
  let extraClassDeclaration = "StateKey getKey() { return {getKind(), getName(), getSlot().value_or(\"\")}; }";
  let hasVerifier = 1; // C1 C2 C3
}

def Transformer_AssignOp : Transformer_KeptOp<"assign", ["getPaddingNeeds"], [Transformer_StateUse<"writes">, Transformer_Source<"false">, Transformer_LeavesPadding<"any">, MemoryEffects<[MemWrite]>, Transformer_StaysF32<"false">, Transformer_WeightGradient<"none">]> {
  let summary = "Writes state, or the range of it that a slice would cut out";
  let description = [{
    (C1) `optimizer` and `magnitude`, and nothing else, have a slot, as at `state`.
    (C2) only a `metric` is of i32.
    ```mlir
    transformer.assign optimizer "wte.weight" slot "first_moment", %m : tensor<8xf32, #transformer.dims<embed>>
    transformer.assign gradient "wpe.weight" dim "positions" offset 0, %g : tensor<4x8xf32, #transformer.dims<sequence, embed>>
    ```
  }];
  let arguments = (ins Transformer_StateKindAttr:$kind, StrAttr:$name, OptionalAttr<StrAttr>:$slot, OptionalAttr<StrAttr>:$dim,
                       DefaultValuedAttr<I64Attr, "0">:$offset, Transformer_KeptTensor:$value);
  let assemblyFormat = "$kind $name (`slot` $slot^)? (`dim` $dim^ `offset` $offset)? `,` $value attr-dict `:` type($value)";
  let builders = [OpBuilder<(ins "const StateKey &":$key, "::mlir::Value":$value,
                             CArg<"::mlir::StringAttr", "{}">:$dim, CArg<"int64_t", "0">:$offset), [{
    build($_builder, $_state, key.kind, key.name, key.slot.empty() ? ::mlir::StringAttr() : $_builder.getStringAttr(key.slot),
          dim, offset, value);
  }]>];
  let extraClassDeclaration = "StateKey getKey() { return {getKind(), getName(), getSlot().value_or(\"\")}; }";
  let hasVerifier = 1; // C1 C2
}

def Transformer_AccumulateOp : Transformer_KeptOp<"accumulate", ["getPaddingNeeds", "readsF32"], [Transformer_StateUse<"adds">, Transformer_Source<"false">, Transformer_LeavesPadding<"any">, MemoryEffects<[MemRead, MemWrite]>, Transformer_StaysF32<"false">, Transformer_WeightGradient<"moves">]> {
  let summary = "Adds to state that a step starts at zero, or keeps the larger magnitude";
  let description = [{
    A `metric` is what a step tells beside its loss, or what that is made of, read in f32.
    What is `exact` are whole numbers, which are added up in i32: each fits f32, their sum need not.
    (C1) is of `gradient`, `loss`, `magnitude` or `metric`.
    (C2) `magnitude`, and nothing else, has a slot, as at `state`.
    (C3) only a `metric` is `exact`.
    ```mlir
    transformer.accumulate gradient "wte.weight", %g : tensor<8xf32, #transformer.dims<embed>>
    transformer.accumulate metric "expert_counts" exact, %counts : tensor<2x8xf32, #transformer.dims<routers, routed>>
    transformer.accumulate magnitude "h.0.mlp.c_fc.weight" slot "input_now", %amax : tensor<f32>
    ```
  }];
  let arguments = (ins Transformer_StateKindAttr:$kind, StrAttr:$name, OptionalAttr<StrAttr>:$slot, UnitAttr:$exact, Transformer_FloatTensor:$value);
  let assemblyFormat = "$kind $name (`slot` $slot^)? (`exact` $exact^)? `,` $value attr-dict `:` type($value)";
  let builders = [OpBuilder<(ins "const StateKey &":$key, "::mlir::Value":$value, CArg<"bool", "false">:$exact), [{
    build($_builder, $_state, key.kind, key.name, key.slot.empty() ? ::mlir::StringAttr() : $_builder.getStringAttr(key.slot), exact, value);
  }]>];
  let extraClassDeclaration = "StateKey getKey() { return {getKind(), getName(), getSlot().value_or(\"\")}; }";
  let hasVerifier = 1; // C1 C2 C3
}

def Transformer_FusedOp : Transformer_Op<"fused", [Pure, IsolatedFromAbove,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A cluster of map, reduce and roll that becomes one kernel";
  let description = [{
    The kernel walks the `rows` (dims, outermost first) and, within each, the
    `cols`; every map in the body runs over rows x cols or a part of them. A
    reduce over all cols gives a value per row, usable at once. A yielded value is
    reduced over rows where its result has the dim `chunk` in front: rows are split
    in that many chunks and each writes its part, for a later cluster to add up.
    That later cluster has no rows, and may reduce an operand over its leading dim
    `chunk` for each column.
    (C1) rows and cols are disjoint; the body has one argument per operand, of its type.
    (C2) a yielded value's type is the result's, or the result's less a leading dim `chunk`,
         the same number of chunks for all.
    (C3) the body holds map, reduce and roll only.
    ```mlir
    // The sum of each row.
    %y = transformer.fused rows <sequence> cols <embed> ins(%x : tensor<4x8xf32, #transformer.dims<sequence, embed>>)
        -> tensor<4xf32, #transformer.dims<sequence>> {
    ^bb0(%in: tensor<4x8xf32, #transformer.dims<sequence, embed>>):
      %sum = transformer.reduce add %in over <embed> : tensor<4x8xf32, #transformer.dims<sequence, embed>> -> tensor<4xf32, #transformer.dims<sequence>>
      transformer.yield %sum : tensor<4xf32, #transformer.dims<sequence>>
    }
    ```
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

def Transformer_RepeatOp : Transformer_Op<"repeat", [AttrSizedOperandSegments, IsolatedFromAbove, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "The same for one part of tensors after the other";
  let description = [{
    The body runs `times` turns. Each turn sees the next part of every `cut`
    operand along `dim`, then the carried values as the turn before yielded them
    (the operands, in the first turn), then the shared operands, whole. It yields
    parts, which the first results have side by side along `dim`, then the carried
    values; the last results are those of the last turn. With `counted` there are as many turns
    as that says, at most `times`; after none, what is carried is as it was.
    (C1) there is a turn, and the sizes of what is cut and set side by side are multiples of their number.
    (C2) the body has an argument for each operand: its part, or its type.
    (C3) the body yields, for each result, its part or, of what is carried, its type, which is the operand's too.
    (C4) the count is a `tensor<i32>`; what is counted sets nothing side by side.
    ```mlir
    %y = transformer.repeat 2 over "sequence" cut(%x : tensor<8x4xf32, #transformer.dims<sequence, embed>>) -> tensor<8x4xf32, #transformer.dims<sequence, embed>> {
    ^bb0(%part: tensor<4x4xf32, #transformer.dims<sequence, embed>>):
      transformer.yield %part : tensor<4x4xf32, #transformer.dims<sequence, embed>>
    }
    %z = transformer.repeat 2 over "sequence" counted %n : tensor<i32> cut(%x : tensor<8x4xf32, #transformer.dims<sequence, embed>>)
        carry(%y : tensor<4x4xf32, #transformer.dims<sequence, embed>>) -> tensor<4x4xf32, #transformer.dims<sequence, embed>> {
    ^bb0(%part: tensor<4x4xf32, #transformer.dims<sequence, embed>>, %last: tensor<4x4xf32, #transformer.dims<sequence, embed>>):
      transformer.yield %part : tensor<4x4xf32, #transformer.dims<sequence, embed>>
    }
    ```
  }];
  let arguments = (ins I64Attr:$times, StrAttr:$dim, Optional<Transformer_IdTensor>:$count, Variadic<Transformer_Tensor>:$cut, Variadic<Transformer_Tensor>:$carried, Variadic<Transformer_Tensor>:$shared);
  let results = (outs Variadic<Transformer_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $times `over` $dim (`counted` $count^ `:` type($count))? `cut` `(` $cut `:` type($cut) `)` (`carry` `(` $carried^ `:` type($carried) `)`)? (`share` `(` $shared^ `:` type($shared) `)`)?
    `->` type($results) attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    // Arguments of the body, by operand.
    ::mlir::Block::BlockArgListType cutArguments() { return getBody().getArguments().take_front(getCut().size()); }
    ::mlir::Block::BlockArgListType carriedArguments() { return getBody().getArguments().slice(getCut().size(), getCarried().size()); }
    ::mlir::Block::BlockArgListType sharedArguments() { return getBody().getArguments().take_back(getShared().size()); }
    // Results, and what the body yields for them.
    ::mlir::ResultRange joinedResults() { return getResults().drop_back(getCarried().size()); }
    ::mlir::ResultRange carriedResults() { return getResults().take_back(getCarried().size()); }
    ::mlir::OperandRange joinedYields() { return getBody().front().getTerminator()->getOperands().drop_back(getCarried().size()); }
    ::mlir::OperandRange carriedYields() { return getBody().front().getTerminator()->getOperands().take_back(getCarried().size()); }
    /// What one turn has of a tensor that is cut.
    ::mlir::RankedTensorType partOf(::mlir::Type whole);
    /// Takes whole what the body uses from outside.
    void shareCaptured();
  }];
  let hasVerifier = 1; // C1 C4
  let hasRegionVerifier = 1; // C2 C3
}

#endif // MESHWORK_TRANSFORMER_STEP_OPS
