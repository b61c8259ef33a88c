// Mixtures of experts: the choice's scores, the experts of a model, and what
// these become on a rank.
#ifndef MESHWORK_TRANSFORMER_EXPERT_OPS
#define MESHWORK_TRANSFORMER_EXPERT_OPS

include "dialects/transformer/TransformerAttrs.td"
include "dialects/transformer/TransformerInterfaces.td"
include "dialects/transformer/TransformerPrimitiveOps.td"

/// What all ops of routing answer alike.
defvar Transformer_Routes = Transformer_Apart # [Transformer_DrawsWords<"false">, Transformer_Source<"false">, Transformer_NoKernelSizes];

def Transformer_PickOp : Transformer_PrimitiveOp<"pick", ["getFactors", "readsF32", "getPadding"], Transformer_Routes # [
    Transformer_AddsUp<"false">, Transformer_CountsNothing, Transformer_TakesPadding, Transformer_NoProducts, Transformer_StaysF32<"true">,
    Transformer_Again<"cheap">, Transformer_WeightGradient<"none">]> {
  let summary = "The scores of each row's choices";
  let description = [{
    A negative choice, which is padding, gives 0. No gradient reaches `choices`.
    (C1) `scores` are f32 [row dims..., experts], `choices` i32 [row dims..., choices], as in `top_k`; the result is f32 with the dims of `choices`.
    ```mlir
    %p = transformer.pick %scores at %c : tensor<1x4x8xf32, #transformer.dims<batch, sequence, experts>>,
        tensor<1x4x3xi32, #transformer.dims<batch, sequence, choices>> -> tensor<1x4x3xf32, #transformer.dims<batch, sequence, choices>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$scores, Transformer_IdTensor:$choices);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$scores `at` $choices attr-dict `:` type($scores) `,` type($choices) `->` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_PickGradOp : Transformer_TensorOp<"pick_grad", ["getFactors", "readsF32", "getPadding"], Transformer_Routes # [
    Transformer_AddsUp<"false">, Transformer_CountsNothing, Transformer_TakesPadding, Transformer_NoProducts, Transformer_StaysF32<"true">,
    Transformer_Again<"dear">, Transformer_WeightGradient<"none">]> {
  let summary = "The gradient of scores: that of each choice at its place, else 0";
  let description = [{
    (C1) types as in `pick`, whose `scores` are the result here.
    ```mlir
    %ds = transformer.pick_grad %dp at %c : tensor<1x4x3xf32, #transformer.dims<batch, sequence, choices>>,
        tensor<1x4x3xi32, #transformer.dims<batch, sequence, choices>> -> tensor<1x4x8xf32, #transformer.dims<batch, sequence, experts>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$gradient, Transformer_IdTensor:$choices);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$gradient `at` $choices attr-dict `:` type($gradient) `,` type($choices) `->` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_LimitChoicesOp : Transformer_TensorOp<"limit_choices", ["getFactors"], Transformer_Routes # [
    AllTypesMatch<["choices", "result"]>, Transformer_AddsUp<"false">, Transformer_CountsNothing, Transformer_TakesPadding, Transformer_NoProducts,
    Transformer_StaysF32<"true">, Transformer_LeavesPadding<"any">, Transformer_Again<"never">, Transformer_WeightGradient<"none">]> {
  let summary = "Choices as they are, but -1 where an expert has been chosen often enough";
  let description = [{
    A group is so many elements of the first dim, one behind the other. Of a group's choices of one expert the first `most` stay: first choices
    count before second ones, and so on; among these, tokens in their order. A choice that is no expert's becomes -1.
    The outcome depends on all tokens of a group, so no rank has a part of these. It is kept for the backward pass, and has no gradient.
    (C1) `choices` are i32 [first dim, other token dims..., choices].
    (C2) `experts` and `most` are 1 or more, and `group` divides the first dim.
    ```mlir
    %kept = transformer.limit_choices %c experts 8 most 2 group 2 : tensor<4x6x2xi32, #transformer.dims<batch, sequence, choices>>
    ```
  }];
  let arguments = (ins Transformer_IdTensor:$choices, I64Attr:$experts, I64Attr:$most, DefaultValuedAttr<I64Attr, "1">:$group);
  let results = (outs Transformer_IdTensor:$result);
  let assemblyFormat = "$choices `experts` $experts `most` $most (`group` $group^)? attr-dict `:` type($choices)";
  let hasVerifier = 1; // C1 C2
}

def Transformer_ExpertsOp : Transformer_PrimitiveOp<"experts", ["getFactors", "getFlops", "readsF32", "getPaddingNeeds", "tellPart"], Transformer_Routes # [
    AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>, AllTypesMatch<["gate", "up"]>,
    Transformer_AddsUp<"false">, Transformer_LeavesPadding<"zero">, Transformer_StaysF32<"false">,
    Transformer_Again<"dear">, Transformer_WeightGradient<"none">]> {
  let summary = "The sum over a token's choices of weight * down(activation(gate(x)) * up(x))";
  let description = [{
    Choice i of a token is the number of an expert; its weight stands before the down projection, so its gradient needs
    nothing kept. A negative choice, which is padding, adds nothing. A token's choices differ, as `top_k` makes them.
    The result is a function of the tokens, not of how ranks share them. A rank with some experts counts them `from` its
    first one, and makes the part of the sum that is theirs.
    `-transformer-expand-experts` makes sorted rows and grouped products of it, and of what is `exchanged` rounds.
    `exchanged` says that tokens go to the ranks that have their experts, and their sums come back: then axes may split both
    tokens and experts, and the result is whole. `over` are these axes, once a rank has its part; the number is the slots of
    a rank for each other rank's tokens, times as many as an even choice needs.
    (C1) `input` is [token dims..., embed], `choices` i32 [token dims..., choices], `weights` f32 with the dims of these;
         the result is like `input`.
    (C2) `gate` and `up` are [experts, expert_ffn, embed], `down` [experts, embed, expert_ffn], of one element type, whatever the dims are called;
         `experts` and `expert_ffn` are dims of these alone.
    (C3) `first_expert` is a `tensor<i32>`, and comes with the `total` of all ranks' experts.
    With a `capacity`, `limit_choices` has made the choices, and left so many for an expert in each group of so many of the first dim.
    (C4) the number is 1 or more, and axes come with it.
    (C5) `capacity` and `group` are 1 or more.
    `rounded` says that rows in front of the down projection are scaled, rounded to e4m3, and scaled back. Their largest magnitude
    before that is the second result: on a rank with a part, that of its rows.
    (C6) there is one scale or none, a `tensor<f32>`, and one magnitude for each.
    ```mlir
    %y = transformer.experts silu %x, %c, %p gate %g up %u down %d : tensor<1x4x8xf32, #transformer.dims<batch, sequence, embed>>,
        tensor<1x4x2xi32, #transformer.dims<batch, sequence, choices>>, tensor<1x4x2xf32, #transformer.dims<batch, sequence, choices>>,
        tensor<4x16x8xf32, #transformer.dims<experts, expert_ffn, embed>>, tensor<4x8x16xf32, #transformer.dims<experts, embed, expert_ffn>>
    ```
  }];
  let arguments = (ins Transformer_ActivationAttr:$function, Transformer_FloatTensor:$input, Transformer_IdTensor:$choices, Transformer_FloatTensor:$weights,
                       Transformer_FloatTensor:$gate, Transformer_FloatTensor:$up, Transformer_FloatTensor:$down, Optional<Transformer_IdTensor>:$first_expert,
                       DefaultValuedAttr<I64Attr, "0">:$total, OptionalAttr<F64Attr>:$bound, OptionalAttr<StrArrayAttr>:$exchange_axes,
                       OptionalAttr<I64Attr>:$capacity, DefaultValuedAttr<I64Attr, "1">:$group, Variadic<Transformer_FloatTensor>:$row_scales);
  let results = (outs Transformer_FloatTensor:$result, Variadic<Transformer_FloatTensor>:$row_magnitudes);
  let assemblyFormat = "$function $input `,` $choices `,` $weights `gate` $gate `up` $up `down` $down (`from` $first_expert^ `:` type($first_expert) `of` $total)? (`exchanged` $bound^ (`over` $exchange_axes^)?)? (`capacity` $capacity^ `group` $group)? (`rounded` $row_scales^ `:` type($row_scales) `->` type($row_magnitudes))? attr-dict `:` type($input) `,` type($choices) `,` type($weights) `,` type($gate) `,` type($down)";
  let extraClassDeclaration = [{
    /// Of this rank's experts, when all are chosen evenly.
    int64_t countChoices();
  }];
  let hasVerifier = 1; // C1 C2 C3 C4 C5 C6
}

def Transformer_ExpertsGradOp : Transformer_TensorOp<"experts_grad", ["getFactors", "getFlops", "staysF32", "readsF32", "getPaddingNeeds", "tellPart"], Transformer_Routes # [Transformer_LeavesPadding<"zero">,
    AttrSizedOperandSegments, AllTypesMatch<["input", "gradient", "dinput"]>, AllTypesMatch<["weights", "dweights"]>, AllTypesMatch<["gate", "up", "dgate", "dup"]>, AllTypesMatch<["down", "ddown"]>,
    Transformer_AddsUp<"false">, Transformer_Again<"dear">, Transformer_WeightGradient<"makes">]> {
  let summary = "Gradients of the input, of the choices' weights and of the three projections";
  let description = [{
    What the activations are is found again; `-transformer-expand-experts` takes them from the `experts` of the same operands.
    The gradient of an expert without tokens is zero.
    `rounded` has a scale for the rows in front of the down projection, rounded as in `experts`. Two more are for the gradients of
    gate's and up's results, which are rounded to e5m2. Their largest magnitudes are the last two results.
    (C1) to (C5) as in `experts`; a gradient has the type of what it is the gradient of.
    (C6) there are three scales or none, each a `tensor<f32>`, and two magnitudes with them.
    ```mlir
    %dx, %dp, %dg, %du, %dd = transformer.experts_grad silu %x, %c, %p gate %g up %u down %d of %dy : tensor<1x4x8xf32, #transformer.dims<batch, sequence, embed>>,
        tensor<1x4x2xi32, #transformer.dims<batch, sequence, choices>>, tensor<1x4x2xf32, #transformer.dims<batch, sequence, choices>>,
        tensor<4x16x8xf32, #transformer.dims<experts, expert_ffn, embed>>, tensor<4x8x16xf32, #transformer.dims<experts, embed, expert_ffn>>
    ```
  }];
  let arguments = (ins Transformer_ActivationAttr:$function, Transformer_FloatTensor:$input, Transformer_IdTensor:$choices, Transformer_FloatTensor:$weights,
                       Transformer_FloatTensor:$gate, Transformer_FloatTensor:$up, Transformer_FloatTensor:$down, Transformer_FloatTensor:$gradient,
                       Optional<Transformer_IdTensor>:$first_expert, DefaultValuedAttr<I64Attr, "0">:$total,
                       OptionalAttr<F64Attr>:$bound, OptionalAttr<StrArrayAttr>:$exchange_axes,
                       OptionalAttr<I64Attr>:$capacity, DefaultValuedAttr<I64Attr, "1">:$group, Variadic<Transformer_FloatTensor>:$row_scales);
  let results = (outs Transformer_FloatTensor:$dinput, Transformer_FloatTensor:$dweights, Transformer_FloatTensor:$dgate, Transformer_FloatTensor:$dup, Transformer_FloatTensor:$ddown,
                      Variadic<Transformer_FloatTensor>:$row_magnitudes);
  let assemblyFormat = "$function $input `,` $choices `,` $weights `gate` $gate `up` $up `down` $down `of` $gradient (`from` $first_expert^ `:` type($first_expert) `of` $total)? (`exchanged` $bound^ (`over` $exchange_axes^)?)? (`capacity` $capacity^ `group` $group)? (`rounded` $row_scales^ `:` type($row_scales) `->` type($row_magnitudes))? attr-dict `:` type($input) `,` type($choices) `,` type($weights) `,` type($gate) `,` type($down)";
  let extraClassDeclaration = [{
    /// Of this rank's experts, when all are chosen evenly.
    int64_t countChoices();
  }];
  let hasVerifier = 1; // C1 C2 C3 C4 C5 C6
}

/// What experts become on a rank, after partitioning: no dim is split any more.
class Transformer_RankOp<string mnemonic, list<string> own, list<Trait> traits>
    : Transformer_TensorOp<mnemonic, ["getFactors"] # own, Transformer_Routes # traits # [Transformer_TakesPadding, Transformer_CountsNothing, Transformer_LeavesPadding<"any">]>;

def Transformer_SortRowsOp : Transformer_RankOp<"sort_rows", [], [AllTypesMatch<["choices", "places"]>, AllTypesMatch<["order", "tokens"]>, Transformer_NoProducts, Transformer_AddsUp<"false">, Transformer_StaysF32<"true">, Transformer_Again<"never">, Transformer_WeightGradient<"none">]> {
  let summary = "The choices of all tokens in the order of their experts";
  let description = [{
    A choice of one of this rank's experts, counted from `first_expert`, takes a row. Rows are sorted by expert, then by the
    number of the choice among all, row-major. `order` and `tokens` are the choice and the token of each row, -1 behind the
    last; `places` is the row of each choice, -1 where it has none. Expert e has the rows from `begins[e]` to `begins[e + 1]`.
    (C1) `choices` is i32 [token dims..., choices], `places` like it; `order` and `tokens` are i32 [rows], `begins` i32 [experts + 1], with one dim each.
    (C2) there are rows for all choices that tokens with different ones can make: tokens times the lesser of choices and experts; or for `most` choices, where whoever
         made them sees to it that there are no more (`assign_slots`, `limit_choices`).
    (C3) `first_expert` is a `tensor<i32>`.
    ```mlir
    %o, %t, %p, %b = transformer.sort_rows %c : tensor<1x4x2xi32, #transformer.dims<batch, sequence, choices>>
        -> tensor<8xi32, #transformer.dims<rows>>, tensor<5xi32, #transformer.dims<begins>>
    ```
  }];
  let arguments = (ins Transformer_IdTensor:$choices, Optional<Transformer_IdTensor>:$first_expert, OptionalAttr<I64Attr>:$most_choices);
  let results = (outs Transformer_IdTensor:$order, Transformer_IdTensor:$tokens, Transformer_IdTensor:$places, Transformer_IdTensor:$begins);
  let assemblyFormat = "$choices (`from` $first_expert^ `:` type($first_expert))? (`most` $most_choices^)? attr-dict `:` type($choices) `->` type($order) `,` type($begins)";
  let hasVerifier = 1; // C1 C2 C3
}

def Transformer_AssignSlotsOp : Transformer_RankOp<"assign_slots", [], [Transformer_NoProducts, Transformer_AddsUp<"false">, Transformer_StaysF32<"true">, Transformer_Again<"never">, Transformer_WeightGradient<"none">]> {
  let summary = "Which tokens go to which ranks, in which round and slot of an exchange";
  let description = [{
    Ranks have `experts` experts each, in their order. In a round each rank takes a token in each of its slots. Tokens are taken
    in their order, a token once for all its choices on one rank. One that finds no slot left on one of its ranks opens the next
    round, and so does one that would give a rank more than `most_choices` of a round's. So a token is in one round. Of a token a rank
    gets at most c choices, the lesser of all and `experts`; so ceil(tokens / min(slots, most_choices / c)) rounds suffice.
    `slots` has the tokens of each rank, round after round, -1 where there is none. `ranks` are those that a token goes to,
    ascending, then -1. `places` has for each round the slots, counted through all ranks, that a token has there; else -1.
    `last` is the number of the last round that has a token, from 0 on.
    `slots` and `places` have their rounds side by side along the first dim of tokens, so that `repeat` cuts them along it.
    (C1) `choices` is i32 [token dims..., choices], `ranks` has these dims, `places` too, with as many times the first one's elements as there
         are rounds at most; `slots` is i32 [first token dim, slots], with a row for each rank in each round; `last` is a `tensor<i32>`.
    (C2) there are rounds for all tokens, and room for all ranks of a token: the lesser of choices and ranks; `most_choices` is c or more.
    ```mlir
    %s, %r, %p, %n = transformer.assign_slots %c experts 2 most 4 : tensor<1x4x2xi32, #transformer.dims<batch, sequence, choices>>
        -> tensor<4x2xi32, #transformer.dims<batch, slots>>, tensor<1x4x2xi32, #transformer.dims<batch, sequence, choices>>,
        tensor<2x4x2xi32, #transformer.dims<batch, sequence, choices>>, tensor<i32>
    ```
  }];
  let arguments = (ins Transformer_IdTensor:$choices, I64Attr:$experts, I64Attr:$most_choices);
  let results = (outs Transformer_IdTensor:$slots, Transformer_IdTensor:$ranks, Transformer_IdTensor:$places, Transformer_IdTensor:$last);
  let assemblyFormat = "$choices `experts` $experts `most` $most_choices attr-dict `:` type($choices) `->` type($slots) `,` type($ranks) `,` type($places) `,` type($last)";
  let hasVerifier = 1; // C1 C2
}

def Transformer_ExpertRoundsOp : Transformer_RankOp<"expert_rounds", [], [AttrSizedOperandSegments, AllTypesMatch<["gate", "up"]>, Transformer_NoProducts, Transformer_AddsUp<"false">, Transformer_StaysF32<"false">, Transformer_Again<"dear">, Transformer_WeightGradient<"none">]> {
  let summary = "Adds to what the first round of an exchange has made what the others make";
  let description = [{
    The rounds behind the first, as many as the largest `last` of all ranks along the axes: tokens in the slots of a round go to
    the ranks that have their experts. Without a gradient there is one sum, as `experts` makes it. With `of` a gradient the sums are those of
    `experts_grad`, in its order. A round's choices of this rank's experts take at most `rows`. `-transformer-expand-rounds` makes a counted `repeat` of it.
    Rows that are `rounded` have their largest magnitudes behind the sums, as results of the op have them; the larger one stays.
    Where gradients of weights are `apart`, they have no sum and begin at zero: what the first round makes of them is accumulated elsewhere.
    (C1) there is one sum, or five with a gradient, or two where others are apart; and one magnitude, or two, with scales; results are like them.
    (C2) `last` is a `tensor<i32>`, and slots, ranks and places have parts for the same rounds, more than one.
    ```mlir
    %z = transformer.expert_rounds silu %x, %c, %p gate %g up %u down %d from %first of 4 rows 8 slots %s, %pl of %r last %n over ["ep"] to %y
      : tensor<4x8xf32, #transformer.dims<sequence, embed>>, tensor<4x2xi32, #transformer.dims<sequence, choices>>, tensor<4x2xf32, #transformer.dims<sequence, choices>>,
        tensor<2x16x8xf32, #transformer.dims<experts, expert_ffn, embed>>, tensor<2x8x16xf32, #transformer.dims<experts, embed, expert_ffn>>, tensor<i32>,
        tensor<4x2xi32, #transformer.dims<sequence, slots>>, tensor<8x2xi32, #transformer.dims<sequence, choices>>, tensor<4x2xi32, #transformer.dims<sequence, choices>>, tensor<i32>
        to tensor<4x8xf32, #transformer.dims<sequence, embed>> -> tensor<4x8xf32, #transformer.dims<sequence, embed>>
    ```
  }];
  let arguments = (ins Transformer_ActivationAttr:$function, Transformer_FloatTensor:$input, Transformer_IdTensor:$choices, Transformer_FloatTensor:$weights,
                       Transformer_FloatTensor:$gate, Transformer_FloatTensor:$up, Transformer_FloatTensor:$down, Transformer_IdTensor:$first_expert,
                       I64Attr:$total, I64Attr:$rows, Transformer_IdTensor:$slots, Transformer_IdTensor:$places, Transformer_IdTensor:$ranks, Transformer_IdTensor:$last,
                       StrArrayAttr:$exchange_axes, Optional<Transformer_FloatTensor>:$gradient, Variadic<Transformer_FloatTensor>:$row_scales, UnitAttr:$apart, Variadic<Transformer_FloatTensor>:$sums);
  let results = (outs Variadic<Transformer_FloatTensor>:$results);
  let assemblyFormat = [{
    $function $input `,` $choices `,` $weights `gate` $gate `up` $up `down` $down `from` $first_expert `of` $total `rows` $rows `slots` $slots `,` $places `of` $ranks `last` $last `over` $exchange_axes
    (`of` $gradient^ `:` type($gradient))? (`rounded` $row_scales^ `:` type($row_scales))? (`apart` $apart^)? `to` $sums attr-dict
    `:` type($input) `,` type($choices) `,` type($weights) `,` type($gate) `,` type($down) `,` type($first_expert) `,` type($slots) `,` type($places) `,` type($ranks) `,` type($last) `to` type($sums) `->` type($results)
  }];
  let extraClassDeclaration = [{
    /// At most, the first one included.
    int64_t countRounds();
    int64_t countChoices();
    /// Results that are sums, and behind them maxima.
    size_t countSums() { return getGradient() ? 5 : 1; }
    /// Of results, the first that is a gradient of weights, and how many there are.
    static constexpr size_t firstOfWeights = 2, countOfWeights = 3;
    /// What it adds to for a result; null where that is apart.
    ::mlir::Value sumOf(size_t result);
    size_t countMagnitudes() { return getRowScales().empty() ? 0 : getGradient() ? 2 : 1; }
  }];
  let hasVerifier = 1; // C1 C2
}

def Transformer_TakeRowsOp : Transformer_RankOp<"take_rows", ["staysF32"], [AllElementTypesMatch<["table", "result"]>, Transformer_NoProducts, Transformer_AddsUp<"false">, Transformer_Again<"dear">, Transformer_WeightGradient<"none">]> {
  let summary = "Rows of a tensor, by their numbers; zeros where a number is negative, of i32 -1";
  let description = [{
    Rows are numbered row-major along the first dims of `table`, those that the result does not end with.
    (C1) the result is [dims of `rows`..., last dims of `table`...], with the elements of `table`.
    ```mlir
    %r = transformer.take_rows %x at %t : tensor<1x4x8xf32, #transformer.dims<batch, sequence, embed>>, tensor<6xi32, #transformer.dims<rows>>
        -> tensor<6x8xf32, #transformer.dims<rows, embed>>
    ```
  }];
  let arguments = (ins Transformer_Tensor:$table, Transformer_IdTensor:$rows);
  let results = (outs Transformer_Tensor:$result);
  let assemblyFormat = "$table `at` $rows attr-dict `:` type($table) `,` type($rows) `->` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_CombineRowsOp : Transformer_RankOp<"combine_rows", [], [AllTypesMatch<["places", "choices"]>, AllElementTypesMatch<["source", "result"]>, Transformer_NoProducts, Transformer_AddsUp<"false">, Transformer_StaysF32<"false">, Transformer_Again<"dear">, Transformer_WeightGradient<"none">]> {
  let summary = "The sum of each token's rows";
  let description = [{
    Row `places[t, i]` is that of choice i of token t; a negative place has none. Sums run in f32, in one binary tree over the
    numbers of experts, whose leaves are the choices; those that are not there are passed over. So experts that are a subtree
    give a part of the same sum.
    Rows are numbered row-major along all dims of `source` but the last.
    (C1) `source` is [row dims..., embed], `places` and `choices` are i32 [token dims..., choices], the result [token dims..., embed].
    ```mlir
    %y = transformer.combine_rows %r at %p of %c : tensor<8x4xf32, #transformer.dims<rows, embed>>, tensor<1x4x2xi32, #transformer.dims<batch, sequence, choices>>
        -> tensor<1x4x4xf32, #transformer.dims<batch, sequence, embed>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$source, Transformer_IdTensor:$places, Transformer_IdTensor:$choices);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$source `at` $places `of` $choices attr-dict `:` type($source) `,` type($places) `->` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_GroupedProductOp : Transformer_RankOp<"grouped_product", ["getFlops"], [AllElementTypesMatch<["lhs", "rhs"]>, Transformer_AddsUp<"false">, Transformer_StaysF32<"false">, Transformer_Again<"dear">, Transformer_WeightGradient<"none">]> {
  let summary = "Each row times the matrix of its expert";
  let description = [{
    Expert e has the rows from `begins[e]` to `begins[e + 1]`; rows behind the last are zeros. The dim that `lhs` and `rhs`
    have is summed, in f32. `about` is how many rows there are when experts are chosen evenly; without it, all.
    (C1) `lhs` is [rows, a] and `rhs` [experts, a, b] or [experts, b, a], the result [rows, b].
    (C2) `begins` is i32 [experts + 1].
    ```mlir
    %y = transformer.grouped_product %x, %w by %b : tensor<8x4xf32, #transformer.dims<rows, embed>>, tensor<3x16x4xf32, #transformer.dims<experts, expert_ffn, embed>>,
        tensor<4xi32, #transformer.dims<begins>> -> tensor<8x16xf32, #transformer.dims<rows, expert_ffn>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$lhs, Transformer_FloatTensor:$rhs, Transformer_IdTensor:$begins, OptionalAttr<I64Attr>:$about);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs `by` $begins (`about` $about^)? attr-dict `:` type($lhs) `,` type($rhs) `,` type($begins) `->` type($result)";
  let hasVerifier = 1; // C1 C2
}

def Transformer_GroupedGradientOp : Transformer_RankOp<"grouped_gradient", ["getFlops"], [AllElementTypesMatch<["lhs", "rhs"]>, Transformer_AddsUp<"true">, Transformer_StaysF32<"false">, Transformer_Again<"dear">, Transformer_WeightGradient<"makes">]> {
  let summary = "For each expert the sum over its rows of the products of two rows' elements";
  let description = [{
    An expert without rows has zeros. `about` is as in `grouped_product`.
    (C1) `lhs` is [rows, a] and `rhs` [rows, b], the result [experts, a, b].
    (C2) `begins` is i32 [experts + 1].
    ```mlir
    %dw = transformer.grouped_gradient %dy, %x by %b : tensor<8x16xf32, #transformer.dims<rows, expert_ffn>>, tensor<8x4xf32, #transformer.dims<rows, embed>>,
        tensor<4xi32, #transformer.dims<begins>> -> tensor<3x16x4xf32, #transformer.dims<experts, expert_ffn, embed>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$lhs, Transformer_FloatTensor:$rhs, Transformer_IdTensor:$begins, OptionalAttr<I64Attr>:$about);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs `by` $begins (`about` $about^)? attr-dict `:` type($lhs) `,` type($rhs) `,` type($begins) `->` type($result)";
  let hasVerifier = 1; // C1 C2
}

#endif // MESHWORK_TRANSFORMER_EXPERT_OPS
