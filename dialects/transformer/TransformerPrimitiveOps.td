// Primitive ops: what decomposition leaves, and what autodiff, fusion and code
// generation understand.
#ifndef MESHWORK_TRANSFORMER_PRIMITIVE_OPS
#define MESHWORK_TRANSFORMER_PRIMITIVE_OPS

include "dialects/transformer/TransformerAttrs.td"
include "dialects/transformer/TransformerInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

/// What a microbatch consists of. `own` are the methods that the op has itself;
/// to all else it names its answers.
class Transformer_TensorOp<string mnemonic, list<string> own, list<Trait> traits = []>
    : Transformer_Op<mnemonic, [Pure, Transformer_StateUse<"none">, DeclareOpInterfaceMethods<FactorOpInterface, own>,
                                DeclareOpInterfaceMethods<TensorOpInterface, own>] # traits>;

/// One that models are decomposed into.
class Transformer_PrimitiveOp<string mnemonic, list<string> own, list<Trait> traits = []>
    : Transformer_TensorOp<mnemonic, own, [DeclareOpInterfaceMethods<DifferentiableOpInterface>] # traits>;

/// Maps and moves of elements.
defvar Transformer_Moves = [Transformer_NoProducts, Transformer_Elementwise<"true">, Transformer_ReadsF32<"false">, Transformer_WeightGradient<"none">,
                            Transformer_AddsUp<"false">, Transformer_Source<"false">, Transformer_NoKernelSizes];

def Transformer_MapOp : Transformer_PrimitiveOp<"map", ["getFactors", "isLinear", "getPadding", "drawsWords", "tellPart"], Transformer_Moves # [
    Transformer_TakesPadding, Transformer_StaysF32<"false">, Transformer_Again<"cheap">, Transformer_Fusible<"true">,
    IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects]> {
  let summary = "Computes each element of its results from the operands' elements at that place";
  let description = [{
    The results' dims are the iteration space; operands are broadcast along the
    dims that they lack. The body sees scalars: f32 for any float tensor
    (storage types convert on load and store, to nearest even; f8 takes what is
    beyond its largest number as that number, and NaN stays NaN) and for i8
    (whole numbers from -127 to 127, the ends of what is beyond; NaN is -127),
    i32 for integer ones. It holds `arith` and `math` ops, `transformer.index`,
    `transformer.dropout_mask` and `transformer.stochastic_round`.
    (C1) all results have equal dims and sizes.
    (C2) each operand's dims are among the results', with equal sizes.
    (C3) the body has one f32 or i32 argument per operand and yields one f32 per result, or one i32 where that is of i32.
    (C4) the body holds nothing but the ops named above.
    ```mlir
    %y = transformer.map ins(%x : tensor<8xf32, #transformer.dims<embed>>)
        -> tensor<8xf32, #transformer.dims<embed>> {
    ^bb0(%e: f32):
      %s = arith.mulf %e, %e : f32
      transformer.yield %s : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Transformer_Tensor>:$inputs);
  let results = (outs Variadic<Transformer_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`ins` `(` $inputs^ `:` type($inputs) `)`)? attr-dict `->` type($results) $body";
  let hasVerifier = 1; // C1 C2 C3 C4
  let hasCanonicalizer = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs,
    "::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$body)>];
}

def Transformer_YieldOp : Transformer_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["MapOp", "FusedOp", "RepeatOp"]>]> {
  let summary = "Ends a body";
  let description = "```mlir\ntransformer.yield %x : f32\n```";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Transformer_IndexOp : Transformer_Op<"index", [Pure, HasParent<"MapOp">]> {
  let summary = "Inside a body: the element's position along a dim of the iteration space";
  let description = [{
    (C1) the results of the `map` around it have the dim.
    ```mlir
    %i = transformer.index "vocab" : i32
    ```
  }];
  let arguments = (ins StrAttr:$dim);
  let results = (outs I32:$result);
  let assemblyFormat = "$dim attr-dict `:` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_DropoutMaskOp : Transformer_Op<"dropout_mask", [Pure, HasParent<"MapOp">, DrawOpInterface]> {
  let summary = "Inside a body: 0, or 1 / (1 - rate), drawn for this element";
  let description = [{
    The element is kept when the word that `DrawOpInterface` draws is at least
    rate * 2^32.
    (C1) 0 <= rate < 1.
    (C2) `space` has a size for each dim of the space, not below its own; `dims` name some of them, one for each offset.
    ```mlir
    %m = transformer.dropout_mask %seed, %step, %first stream 7 rate 1.0e-1
    ```
  }];
  let arguments = (ins I32:$seed, I32:$step, I32:$first_sample, Variadic<I32>:$offsets, I32Attr:$stream, F64Attr:$rate,
                       OptionalAttr<DenseI64ArrayAttr>:$space, OptionalAttr<StrArrayAttr>:$dims);
  let results = (outs F32:$result);
  let assemblyFormat = "$seed `,` $step `,` $first_sample `stream` $stream `rate` $rate (`of` $space^ `at` $dims $offsets)? attr-dict";
  let hasVerifier = 1; // C1 C2
}

def Transformer_StochasticRoundOp : Transformer_Op<"stochastic_round", [Pure, HasParent<"MapOp">, DrawOpInterface]> {
  let summary = "Inside a body: the value rounded to bf16 at random, up or down in proportion to the distance";
  let description = [{
    Adds the low 16 bits of the word that `DrawOpInterface` draws to the f32's
    bits and clears the low half. A value a quarter of the way from one bf16 to
    the next one away from zero becomes the latter with probability 1/4, so the
    mean is the value. A value of bf16 stays
    as it is, and so do NaN and infinities. What is finite stays finite: beyond
    the largest bf16 the value is cut, where rounding to nearest may give
    infinity. The result is an f32 that a store in bf16 does not round again.
    (C1) `space` has a size for each dim of the space, not below its own; `dims` name some of them, one for each offset.
    ```mlir
    %r = transformer.stochastic_round %w by %seed, %step, %first stream 7
    ```
  }];
  let arguments = (ins I32:$seed, I32:$step, I32:$first_sample, Variadic<I32>:$offsets, F32:$value, I32Attr:$stream,
                       OptionalAttr<DenseI64ArrayAttr>:$space, OptionalAttr<StrArrayAttr>:$dims);
  let results = (outs F32:$result);
  let assemblyFormat = "$value `by` $seed `,` $step `,` $first_sample `stream` $stream (`of` $space^ `at` $dims $offsets)? attr-dict";
  let hasVerifier = 1; // C1
}

def Transformer_ReduceOp : Transformer_PrimitiveOp<"reduce", ["getFactors", "isLinear", "getPaddingNeeds", "getPadding"], Transformer_Moves # [
    Transformer_DrawsWords<"false">, Transformer_CountsNothing, Transformer_StaysF32<"true">, Transformer_Again<"cheap">, Transformer_Fusible<"true">]> {
  let summary = "Adds up, or takes the maximum of, the elements along some dims";
  let description = [{
    The result has the other dims, in the input's order. `max` has no gradient
    here: it only serves to keep exponentials in range, where its gradient
    cancels.
    (C1) the result's dims are the input's less `dims`, with equal sizes; its elements are f32.
    ```mlir
    %s = transformer.reduce add %x over <embed> : tensor<4x8xf32, #transformer.dims<sequence, embed>>
        -> tensor<4xf32, #transformer.dims<sequence>>
    ```
  }];
  let arguments = (ins Transformer_ReductionAttr:$kind, Transformer_FloatTensor:$input, Transformer_DimsAttr:$dims);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$kind $input `over` $dims attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1; // C1
  let builders = [OpBuilder<(ins "Reduction":$kind, "::mlir::Value":$input, "DimsAttr":$dims)>];
}

def Transformer_RollOp : Transformer_PrimitiveOp<"roll", ["getFactors", "getPadding"], Transformer_Moves # [
    Transformer_DrawsWords<"false">, Transformer_CountsNothing, Transformer_TakesPadding, Transformer_Linear<"true">, Transformer_StaysF32<"false">, Transformer_Again<"cheap">, Transformer_Fusible<"true">, SameOperandsAndResultType]> {
  let summary = "result[i] = input[(i + shift) mod size] along the last dim";
  let description = [{
    (C1) 0 <= shift < size of the last dim.
    ```mlir
    %y = transformer.roll %x by 2 : tensor<4xf32, #transformer.dims<head_dim>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$input, I64Attr:$shift);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$input `by` $shift attr-dict `:` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_SliceOp : Transformer_PrimitiveOp<"slice", ["getFactors", "getPadding"], Transformer_Moves # [
    Transformer_DrawsWords<"false">, Transformer_CountsNothing, Transformer_TakesPadding, Transformer_Linear<"true">, Transformer_StaysF32<"false">, Transformer_Again<"cheap">, Transformer_Fusible<"false">]> {
  let summary = "A range of one dim, which may take another name or, at size one, go away";
  let description = [{
    The result keeps the other dims. Along `dim` it holds the elements from
    `offset` on, as many as the result's dim at that place has; a result with
    one dim less holds one element.
    (C1) the range lies within the input; the other dims are equal.
    ```mlir
    %p = transformer.slice %positions dim "positions" offset 0 : tensor<1024x8xf32, #transformer.dims<positions, embed>>
        -> tensor<16x8xf32, #transformer.dims<sequence, embed>>
    ```
  }];
  let arguments = (ins Transformer_Tensor:$input, StrAttr:$dim, I64Attr:$offset);
  let results = (outs Transformer_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `offset` $offset attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1; // C1
  let extraClassDeclaration = [{
    /// Position of the sliced dim in the input.
    int64_t getPosition();
    /// Whether the result lacks the sliced dim.
    bool dropsDim();
  }];
}

def Transformer_UnsliceOp : Transformer_PrimitiveOp<"unslice", ["getFactors", "getPadding"], Transformer_Moves # [
    Transformer_DrawsWords<"false">, Transformer_CountsNothing, Transformer_TakesPadding, Transformer_Linear<"true">, Transformer_StaysF32<"false">, Transformer_Again<"dear">, Transformer_Fusible<"false">]> {
  let summary = "Parts set side by side, zero where no part lies: the gradient of slices";
  let description = [{
    Part i lies along `dim` from `offsets[i]` on, as `slice` would cut it out.
    (C1) each part is a slice of the result; parts do not overlap.
    ```mlir
    %x = transformer.unslice %a, %b dim "qkv" offsets [0, 1] : tensor<8xf32, #transformer.dims<embed>>,
        tensor<8xf32, #transformer.dims<embed>> -> tensor<2x8xf32, #transformer.dims<qkv, embed>>
    ```
  }];
  let arguments = (ins Variadic<Transformer_Tensor>:$parts, StrAttr:$dim, DenseI64ArrayAttr:$offsets);
  let results = (outs Transformer_Tensor:$result);
  let assemblyFormat = "$parts `dim` $dim `offsets` $offsets attr-dict `:` type($parts) `->` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_SplitOp : Transformer_TensorOp<"split", ["getFactors"], Transformer_Moves # [
    Transformer_DrawsWords<"false">, Transformer_CountsNothing, Transformer_TakesPadding, Transformer_LeavesPadding<"any">, Transformer_Linear<"true">, Transformer_StaysF32<"false">, Transformer_Again<"cheap">, Transformer_Fusible<"false">]> {
  let summary = "The same elements with one dim as several, outermost first";
  let description = [{
    Made on a rank, after partitioning: no dim that it changes is split over ranks.
    (C1) the result has the input's dims, but in the place of `dim` two or more others of as many elements.
    ```mlir
    %b = transformer.split %x dim "embed" : tensor<4x512xf32, #transformer.dims<ffn, embed>>
        -> tensor<4x2x256xf32, #transformer.dims<ffn, blocks, embed>>
    ```
  }];
  let arguments = (ins Transformer_Tensor:$input, StrAttr:$dim);
  let results = (outs Transformer_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_MergeOp : Transformer_TensorOp<"merge", ["getFactors"], Transformer_Moves # [
    Transformer_DrawsWords<"false">, Transformer_CountsNothing, Transformer_TakesPadding, Transformer_LeavesPadding<"any">, Transformer_Linear<"true">, Transformer_StaysF32<"false">, Transformer_Again<"cheap">, Transformer_Fusible<"false">]> {
  let summary = "The same elements with several dims as one: what `split` undoes";
  let description = [{
    `gradient` says whose gradient the result is, summed over ranks, where @update makes it.
    (C1) the input has the result's dims, but in the place of `dim` two or more others of as many elements.
    ```mlir
    %x = transformer.merge %b dim "embed" : tensor<4x2x256xf32, #transformer.dims<ffn, blocks, embed>>
        -> tensor<4x512xf32, #transformer.dims<ffn, embed>>
    ```
  }];
  let arguments = (ins Transformer_Tensor:$input, StrAttr:$dim, OptionalAttr<StrAttr>:$gradient);
  let results = (outs Transformer_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim (`gradient` $gradient^)? attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_ContractOp : Transformer_PrimitiveOp<"contract", ["getFactors", "getFlops", "getPaddingNeeds", "getPadding", "addsUp"], Transformer_Apart # [
    Transformer_DrawsWords<"false">, Transformer_Source<"false">, Transformer_NoKernelSizes,
    Transformer_CountsNothing, Transformer_StaysF32<"false">, Transformer_Again<"dear">, Transformer_WeightGradient<"makes">, AttrSizedOperandSegments]> {
  let summary = "Every matrix product, as an einsum of two tensors";
  let description = [{
    Letters name dims by position: `bse,ehd->bshd`. A letter that the result
    lacks is summed; sums run in f32. Operands of f8 come with two `scales`, what
    their elements are multiplied with: so is the sum, before it is rounded.
    (C1) the equation has the form `ab,bc->ac`: distinct lower-case letters in
         each term, as many as the tensor has dims, and every letter in two terms at least.
    (C2) dims under one letter have equal sizes and names.
    (C3) the dims of `bias`, added to the result, are the result's last ones; all of them: a sum to add to.
    (C4) both operands are f8 and there are two scales, or neither is and there are none.
    ```mlir
    %y = transformer.contract "se,ef->sf" %x, %w : tensor<4x8xf32, #transformer.dims<sequence, embed>>,
        tensor<8x16xf32, #transformer.dims<embed, ffn>> -> tensor<4x16xf32, #transformer.dims<sequence, ffn>>
    ```
  }];
  let arguments = (ins StrAttr:$equation, Transformer_ProductTensor:$lhs, Transformer_ProductTensor:$rhs, Variadic<Transformer_ScaleTensor>:$scales, Optional<Transformer_FloatTensor>:$bias);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$equation $lhs `,` $rhs (`scaled` $scales^ `:` type($scales))? (`bias` $bias^ `:` type($bias))? attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let hasVerifier = 1; // C1 C2 C3 C4
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::StringAttr":$equation, "::mlir::Value":$lhs, "::mlir::Value":$rhs), [{
    build($_builder, $_state, result, equation, lhs, rhs, ::mlir::ValueRange(), ::mlir::Value());
  }]>];
}

def Transformer_EmbeddingOp : Transformer_PrimitiveOp<"embedding", ["staysF32", "getPaddingNeeds", "getPadding", "tellPart", "getKernelSizes"], Transformer_Apart # [
    Transformer_AddsUp<"false">, Transformer_DrawsWords<"false">, Transformer_Source<"false">,
    Transformer_FactorsFromNames, Transformer_NoProducts, Transformer_Again<"dear">, Transformer_WeightGradient<"none">]> {
  let summary = "Rows of a table, chosen by ids";
  let description = [{
    A rank's part of a table begins at `first_row` of the whole; ids of other rows give zeros.
    The row `padding_id` is read like any other, but no gradient reaches it
    through this op (PyTorch's `padding_idx`). A head that shares the table
    still has one for it.
    (C1) `table` is [rows, row dims...], `ids` an i32 tensor, the result [id dims..., row dims...];
         `first_row` is a `tensor<i32>`.
    (C2) `padding_id` is a row of the whole table and an i32.
    ```mlir
    %x = transformer.embedding %table, %ids padding 3 : tensor<16x4xf32, #transformer.dims<vocab, embed>>,
        tensor<1x8xi32, #transformer.dims<batch, sequence>> -> tensor<1x8x4xf32, #transformer.dims<batch, sequence, embed>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$table, Transformer_IdTensor:$ids, Optional<Transformer_IdTensor>:$first_row,
                       OptionalAttr<I64Attr>:$padding_id);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$table `,` $ids (`padding` $padding_id^)? (`from` $first_row^ `:` type($first_row))? attr-dict `:` type($table) `,` type($ids) `->` type($result)";
  let hasVerifier = 1; // C1 C2
}

def Transformer_EmbeddingGradOp : Transformer_TensorOp<"embedding_grad", ["getPaddingNeeds", "getPadding", "tellPart", "getKernelSizes"], Transformer_Apart # [
    Transformer_AddsUp<"true">, Transformer_DrawsWords<"false">, Transformer_Source<"false">,
    Transformer_FactorsFromNames, Transformer_NoProducts, Transformer_StaysF32<"false">, Transformer_Again<"dear">, Transformer_WeightGradient<"makes">]> {
  let summary = "The gradient of an embedding table: rows of `gradient` added up by id";
  let description = [{
    Ids of rows that a rank's part, from `first_row` on, does not have are passed over.
    (C1) shapes as in `embedding`, whose table is the result here.
    ```mlir
    %dt = transformer.embedding_grad %ids, %dx : tensor<1x8xi32, #transformer.dims<batch, sequence>>,
        tensor<1x8x4xf32, #transformer.dims<batch, sequence, embed>> -> tensor<16x4xf32, #transformer.dims<vocab, embed>>
    ```
  }];
  let arguments = (ins Transformer_IdTensor:$ids, Transformer_FloatTensor:$gradient, Optional<Transformer_IdTensor>:$first_row);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$ids `,` $gradient (`from` $first_row^ `:` type($first_row))? attr-dict `:` type($ids) `,` type($gradient) `->` type($result)";
  let hasVerifier = 1; // C1
}

/// What both ops of attention have beside their tensors; `AttentionPart` holds it.
defvar Transformer_AttentionPart = (ins Optional<Transformer_IdTensor>:$documents, Optional<Transformer_IdTensor>:$positions,
                                        Optional<Transformer_IdTensor>:$keys, Variadic<Transformer_IdTensor>:$random, Transformer_AttentionAttr:$terms);
class Transformer_AttentionFormat<string tensors, string rest> {
  string text = tensors # [{ (`documents` `(` $documents^ `:` type($documents) `)`)? (`positions` `(` $positions^ `:` type($positions) `)`)?
    (`keys` `(` $keys^ `:` type($keys) `)`)? (`random` `(` $random^ `:` type($random) `)`)? `` $terms }] # rest;
}

def Transformer_AttentionOp : Transformer_PrimitiveOp<"attention", ["getFactors", "getFlops", "staysF32", "getPadding", "tellPart", "drawsWords", "getKernelSizes"], Transformer_Apart # [
    AttentionOpInterface, Transformer_AddsUp<"false">, Transformer_Source<"false">,
    Transformer_TakesPadding, Transformer_Again<"dear">, Transformer_WeightGradient<"none">, AttrSizedOperandSegments]> {
  let summary = "softmax(scale q k^T + mask) v, blockwise";
  let description = [{
    Query i sees key j when j <= i (`causal`) and i - j < window (if `window`
    is positive). Where several documents lie in one sequence, `documents` says
    of each token at which position its own begins; query i then sees no key
    before that (-transformer-separate-documents). Where ranks share the queries of a
    sequence (`shared gathered`), `positions` says of each query which it is; the keys are all there. A row of no
    position, -1, is padding: its result is zero, its `lse` -infinity. Where also the keys are
    some of a sequence's (`shared ring`), `keys` says which. They rise; rows of -1 behind them are padding
    that no query sees. `result` is then a part of a sum and may be f32; so may be the gradients. `heads` is a multiple of `kv_heads`; query head h reads key
    head h / (heads / kv_heads). `lse` is each row's log-sum-exp, for the
    gradient. With a rate of dropout, probabilities are dropped; the operands
    `random` are then seed, step and first sample. On a rank with some of the
    heads, the first one's number follows. What stands behind the operands is `#transformer.attention`.
    (C1) q is [batch, sequence, heads, head_dim], k and v [batch, sequence, kv_heads, head_dim]
         (`heads` when there are as many), sizes equal where names are; heads divisible by kv_heads;
         `lse` is an f32 tensor [batch, heads, sequence]; `documents` an i32 tensor [batch, sequence], with `causal` only.
         `positions` is i32 [sequence]; with them k and v may have more or fewer rows than q.
    (C3) `keys` is i32 [sequence], as many as k has rows, only beside `positions` and with the number of all keys; with it `result` may be f32 beside others.
    (C2) the rate is 0 to less than 1; `random` has three `tensor<i32>` operands when it is positive, four with
         the number of all heads, or none in a model that is not decomposed yet; window and cap >= 0; `scale` and `cap` are finite.
    (C4) attributes in braces have the name of a dialect: a window, say, is said before them.
    ```mlir
    %o, %lse = transformer.attention %q, %k, %v causal scale 5.0e-1 : !q, !kv, !kv -> !q, !lse
    %p, %lse2 = transformer.attention %q, %k, %v documents(%begins : !tokens) causal scale 5.0e-1 : !q, !kv, !kv -> !q, !lse
    %r, %lse3 = transformer.attention %half, %k, %v positions(%rows : !positions) causal scale 5.0e-1 : !half, !kv, !kv -> !half, !half_lse
    %s, %lse4 = transformer.attention %half, %k2, %v2 positions(%rows : !positions) keys(%others : !positions) causal scale 5.0e-1 keys 8 : !half, !half, !half -> !half, !half_lse
    ```
  }];
  let arguments = !con((ins Transformer_FloatTensor:$q, Transformer_FloatTensor:$k, Transformer_FloatTensor:$v), Transformer_AttentionPart);
  let results = (outs Transformer_FloatTensor:$result, Transformer_FloatTensor:$lse);
  let assemblyFormat = Transformer_AttentionFormat<"$q `,` $k `,` $v",
    "attr-dict `:` type($q) `,` type($k) `,` type($v) `->` type($result) `,` type($lse)">.text;
  let extraClassDeclaration = "static OverKeys getOverKeys() { return OverKeys::merged; }";
  let hasVerifier = 1; // C1 C2 C3 C4
}

def Transformer_AttentionGradOp : Transformer_TensorOp<"attention_grad", ["getFactors", "getFlops", "getPaddingNeeds", "tellPart", "drawsWords", "getKernelSizes"], Transformer_Apart # [
    AttentionOpInterface, Transformer_AddsUp<"false">, Transformer_Source<"false">,
    Transformer_LeavesPadding<"zero">, Transformer_StaysF32<"false">, Transformer_Again<"dear">, Transformer_WeightGradient<"none">, AttrSizedOperandSegments]> {
  let summary = "Gradients of q, k and v; scores are computed again block by block";
  let description = [{
    Dao et al., arXiv 2205.14135, algorithm 4. `duplicated` on a rank where others compute the same: their bits must be equal then.
    With `positions`, `dk` and `dv` are what this rank's queries add to them. With `keys`, `dq` is what these keys add to it; `lse` and `result` are of all keys.
    (C1) types and options as in `attention`; a gradient has the type of what it is the gradient of, or with `keys` f32.
    (C2) (C3) (C4) as in `attention`, but `random` is always there when the rate is positive.
    ```mlir
    %dq, %dk, %dv = transformer.attention_grad %q, %k, %v, %o, %lse, %do causal scale 5.0e-1
        : !q, !kv, !kv, !q, !lse, !q -> !q, !kv, !kv
    ```
  }];
  let arguments = !con((ins Transformer_FloatTensor:$q, Transformer_FloatTensor:$k, Transformer_FloatTensor:$v, Transformer_FloatTensor:$result,
    Transformer_FloatTensor:$lse, Transformer_FloatTensor:$gradient), Transformer_AttentionPart, (ins UnitAttr:$duplicated));
  let results = (outs Transformer_FloatTensor:$dq, Transformer_FloatTensor:$dk, Transformer_FloatTensor:$dv);
  let assemblyFormat = Transformer_AttentionFormat<"$q `,` $k `,` $v `,` $result `,` $lse `,` $gradient", [{ (`duplicated` $duplicated^)? attr-dict
    `:` type($q) `,` type($k) `,` type($v) `,` type($result) `,` type($lse) `,` type($gradient) `->` type($dq) `,` type($dk) `,` type($dv) }]>.text;
  let extraClassDeclaration = "static OverKeys getOverKeys() { return OverKeys::summed; }";
  let hasVerifier = 1; // C1 C2 C3 C4
}

def Transformer_HeadLossGradOp : Transformer_TensorOp<"head_loss_grad", ["getFactors", "getFlops", "getPaddingNeeds", "tellPart"], Transformer_Apart # [
    Transformer_AddsUp<"false">, Transformer_DrawsWords<"false">, Transformer_Source<"false">, Transformer_NoKernelSizes,
    Transformer_LeavesPadding<"zero">, Transformer_StaysF32<"false">, Transformer_Again<"never">, Transformer_WeightGradient<"none">, AttrSizedOperandSegments]> {
  let summary = "`head_loss` together with its gradients, in one pass over chunks of tokens";
  let description = [{
    Autodiff puts it in the place of `head_loss`: the loss is a seed of the
    backward pass, so both gradients can follow each chunk of logits at once.
    A rank with some rows of `weight`, from `first_row` of `vocabulary` on,
    combines each token's maximum, sum of exponentials and target logit over
    `vocab_axes`; its `dhidden` is partial over them. Where only the first
    `rows` of its part are rows of the whole, the others count for nothing; so
    does a token for which `valid` is 0, which is padding of a split dim.
    `counted` and `cap` are those of `head_loss`.
    (C1) (C2) as in `head_loss`; gradients have the types of `hidden` and `weight`.
    (C3) `first_row`, a `tensor<i32>`, `vocabulary` and `vocab_axes` are there together; `rows` only with them.
    (C4) `valid` has the dims of `targets`.
    ```mlir
    %loss, %dh, %dw = transformer.head_loss_grad %h, %w, %t scale 1.0 : !h, !w, !t -> tensor<f32>, !h, !w
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$hidden, Transformer_FloatTensor:$weight, Transformer_IdTensor:$targets,
    Optional<Transformer_IdTensor>:$first_row, Optional<Transformer_IdTensor>:$rows, Optional<Transformer_FloatTensor>:$valid, Optional<Transformer_FloatTensor>:$counted, F64Attr:$scale, DefaultValuedAttr<F64Attr, "0.0">:$cap, DefaultValuedAttr<I64Attr, "0">:$vocabulary,
    OptionalAttr<StrArrayAttr>:$vocab_axes);
  let results = (outs Transformer_FloatTensor:$loss, Transformer_FloatTensor:$dhidden, Transformer_FloatTensor:$dweight);
  let assemblyFormat = "$hidden `,` $weight `,` $targets (`counted` `(` $counted^ `:` type($counted) `)`)? `scale` $scale (`cap` $cap^)? (`from` $first_row^ `:` type($first_row) `of` $vocabulary `over` $vocab_axes)? (`rows` $rows^ `:` type($rows))? (`valid` $valid^ `:` type($valid))? attr-dict `:` type($hidden) `,` type($weight) `,` type($targets) `->` type($loss) `,` type($dhidden) `,` type($dweight)";
  let hasVerifier = 1; // C1 C2 C3
}

def Transformer_RotaryTableOp : Transformer_TensorOp<"rotary_table", ["getFactors", "tellPart"], Transformer_Apart # [
    Transformer_AddsUp<"false">, Transformer_DrawsWords<"false">, Transformer_Source<"true">, Transformer_NoKernelSizes,
    Transformer_TakesPadding, Transformer_LeavesPadding<"any">, Transformer_NoProducts, Transformer_StaysF32<"true">, Transformer_Again<"dear">, Transformer_WeightGradient<"none">, AllTypesMatch<["cosine", "sine"]>]> {
  let summary = "Cosine and signed sine of every position's angles, for `rope`";
  let description = [{
    [sequence, head_dim], or, for rows to be looked up in it, with another first dim; both halves of head_dim, whatever
    its name is, hold the same angles and the first half of the sine is negated, so that
    rotated = x * cosine + roll(x, head_dim / 2) * sine.
    Row i is of position i; of a rank's part of a sequence it is of `positions[i]`,
    and zero where that is negative.
    (C1) the results are f32 tensors of two dims, of which `sequence` is not the second.
    (C2) `head_dim` is twice the number of inverse frequencies.
    (C3) positions are i32 [sequence], as many as rows of that name.
    ```mlir
    %c, %s = transformer.rotary_table inverse_frequencies [1.0, 0.01] scale 1.0
        : tensor<8x4xf32, #transformer.dims<sequence, head_dim>>
    ```
  }];
  let arguments = (ins Optional<Transformer_Tensor>:$positions, DenseF32ArrayAttr:$inverse_frequencies, F32Attr:$scale);
  let results = (outs Transformer_FloatTensor:$cosine, Transformer_FloatTensor:$sine);
  let assemblyFormat = "(`of` $positions^ `:` type($positions))? `inverse_frequencies` $inverse_frequencies `scale` $scale attr-dict `:` type($cosine)";
  let hasVerifier = 1; // C1 C2 C3
}

def Transformer_GroupScore : Transformer_Enum<"GroupScore", "what a group of experts is chosen by", PlanGroupScore>;
def Transformer_GroupScoreAttr : Transformer_EnumAttr<Transformer_GroupScore, "group_score">;

def Transformer_TopKOp : Transformer_TensorOp<"top_k", ["getFactors", "readsF32", "getPadding", "tellPart"], Transformer_Apart # [
    Transformer_AddsUp<"false">, Transformer_DrawsWords<"false">, Transformer_Source<"false">, Transformer_NoKernelSizes,
    Transformer_TakesPadding, Transformer_NoProducts, Transformer_StaysF32<"true">, Transformer_Again<"never">, Transformer_WeightGradient<"none">]> {
  let summary = "The numbers of the k largest scores of each row, the largest first";
  let description = [{
    k is the size of the result's last dim. Equal scores are taken in the order of their numbers. A NaN is larger than all
    else, so that it is chosen and seen. -0 equals 0.
    With `groups`, the row is cut into as many equal runs. A group's score is its `maximum`, or the sum, in f32, of its
    `two_best`. Only scores of the `kept` best groups are chosen from.
    Where `valid` is 0, the row is padding and chooses -1. Partitioning adds it; it is not for models.
    The outcome is kept for the backward pass, never made again, and has no gradient.
    (C1) `scores` are f32 [row dims..., experts], the result i32 [row dims..., choices]; `choices` is a name of its own.
    (C2) there is a group or more, they divide the experts, and 1 to all of them are kept; a sum of two needs two experts a group.
    (C3) there are 1 to as many choices as the kept groups have experts.
    (C4) `valid` is f32 with the row dims.
    ```mlir
    %c = transformer.top_k %scores groups 4 kept 2 by two_best : tensor<1x4x8xf32, #transformer.dims<batch, sequence, experts>>
        -> tensor<1x4x3xi32, #transformer.dims<batch, sequence, choices>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$scores, Optional<Transformer_FloatTensor>:$valid, DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<I64Attr, "1">:$kept_groups, DefaultValuedAttr<Transformer_GroupScoreAttr, "GroupScore::maximum">:$group_score);
  let results = (outs Transformer_IdTensor:$choices);
  let assemblyFormat = "$scores (`valid` $valid^ `:` type($valid))? (`groups` $groups^ `kept` $kept_groups `by` $group_score)? attr-dict `:` type($scores) `->` type($choices)";
  let hasVerifier = 1; // C1 C2 C3 C4
}

#endif // MESHWORK_TRANSFORMER_PRIMITIVE_OPS
