// Model ops: what people write and `meshwork import` emits.
#ifndef MESHWORK_TRANSFORMER_MODEL_OPS
#define MESHWORK_TRANSFORMER_MODEL_OPS

include "dialects/transformer/TransformerAttrs.td"
include "dialects/transformer/TransformerInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

/// Nobody asks it for factors: it is decomposed before.
class Transformer_CompositeOp<string mnemonic, list<Trait> traits = []>
    : Transformer_Op<mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<DecomposableOpInterface, ["decompose"]>], traits)>;

/// Brings in or keeps what outlives a microbatch.
class Transformer_KeptOp<string mnemonic, list<string> own, list<Trait> traits>
    : Transformer_Op<mnemonic, Transformer_Apart # [DeclareOpInterfaceMethods<TensorOpInterface, own>, Transformer_Again<"dear">, Transformer_CountsNothing,
                                                     Transformer_AddsUp<"false">, Transformer_DrawsWords<"false">, Transformer_NoKernelSizes] # traits>;

def Transformer_ParameterOp : Transformer_KeptOp<"parameter", ["staysF32"], [Transformer_StateUse<"reads">, Transformer_Source<"true">, Transformer_TakesPadding, Transformer_LeavesPadding<"zero">, MemoryEffects<[MemRead]>, Transformer_WeightGradient<"none">]> {
  let summary = "A trained tensor";
  let description = [{
    Yields the tensor in the compute type. `name` is its name in Hugging Face
    files; a file may hold the same elements, row-major, under `file_shape`.
    Tied weights are one parameter used twice. Weight decay leaves out
    parameters whose file shape has fewer than two dims.

    What files hold in several tensors lists them in `files`, such as one for
    each expert. They are written, and their names and indices decide the initial
    values. Each list behind `or` is another form that is read if a file has it.
    What is `untrained` gets no gradient, no decay and no part in the norm, and is f32 whatever the compute type is.
    It is read from files and written to them like any other, but counts as no parameter.
    (C1) the result has a static shape.
    Where the result is one rank's part, `global_shape` is the whole's.
    (C2) `file_shape` has as many elements as the whole.
    (C3) `name` is unique in the function, and not empty.
    (C4) numbers of `init` are finite, the standard deviation is not negative, low is not above high.
    A model whose blocks repeat numbers them from 0 on: `layer` tells the one
    that the parameter belongs to. Recompute policies and budgets go by it, and
    by no name; without it there are no layers.
    (C5) `layer` is from 0 to 65535.
    (C6) tensors of `files` hold each element once, have names of their own, and lie in one tensor of each other form.
    (C7) tensors of `files` all have two dims or more, or none has; `file_shape` is not given too.
    (C8) what is `untrained` is f32.
    ```mlir
    %w = transformer.parameter "wte.weight" init <normal, 0.0, 0.02>
        : tensor<50257x768xf32, #transformer.dims<vocab, embed>>
    %n = transformer.parameter "h.3.ln_1.weight" layer 3 init <constant, 1.0>
        : tensor<768xf32, #transformer.dims<embed>>
    %b = transformer.parameter "h.3.gate.bias" layer 3 untrained init <constant, 0.0>
        : tensor<8xf32, #transformer.dims<routed>>
    %e = transformer.parameter "h.3.experts.up" layer 3 init <normal, 0.0, 0.02>
        files [#transformer.file<"h.3.experts.{}.up.weight" along 0>]
        or [[#transformer.file<"h.3.experts.up">]]
        : tensor<8x64x16xf32, #transformer.dims<experts, expert_ffn, embed>>
    ```
  }];
  let arguments = (ins StrAttr:$name, Transformer_InitAttr:$init,
                       OptionalAttr<DenseI64ArrayAttr>:$file_shape, OptionalAttr<DenseI64ArrayAttr>:$global_shape,
                       OptionalAttr<I64Attr>:$layer, UnitAttr:$untrained, OptionalAttr<Transformer_FilesAttr>:$files, OptionalAttr<Transformer_OtherFilesAttr>:$other_files);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$name (`layer` $layer^)? (`untrained` $untrained^)? `init` $init (`file_shape` $file_shape^)? (`files` $files^)? (`or` $other_files^)? (`of` $global_shape^)? attr-dict `:` type($result)";
  let hasVerifier = 1; // C1 C2 C3 C4 C5 C6 C7 C8; that names differ, by the function's gate
  let extraClassDeclaration = [{
    StateKey getKey() { return {StateKind::weight, getName()}; }
    /// The shape of the whole parameter.
    ::llvm::ArrayRef<int64_t> getWholeShape();
    /// The shape in files: `file_shape`, or the whole's; of what `files` hold, the whole's.
    ::llvm::ArrayRef<int64_t> getShapeInFile();
    /// Whether its tensors in files have two dims or more.
    bool isMatrixInFiles();
  }];
}

def Transformer_BinaryKind : Transformer_Enum<"BinaryKind", "elementwise arithmetic", [
  I32EnumCase<"add", 0>, I32EnumCase<"sub", 1>, I32EnumCase<"mul", 2>]>;

class Transformer_BinaryOp<string mnemonic> : Transformer_CompositeOp<mnemonic> {
  let summary = "Elementwise arithmetic; dims that an operand lacks are broadcast by name";
  let description = [{
    (C1) each operand's dims are among the result's, with equal sizes.
    ```mlir
    %y = transformer.}] # mnemonic # [{ %x, %bias : tensor<4x8xf32, #transformer.dims<sequence, embed>>,
        tensor<8xf32, #transformer.dims<embed>> -> tensor<4x8xf32, #transformer.dims<sequence, embed>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$lhs, Transformer_FloatTensor:$rhs);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let hasVerifier = 1; // C1
}
def Transformer_AddOp : Transformer_BinaryOp<"add">;
def Transformer_SubOp : Transformer_BinaryOp<"sub">;
def Transformer_MulOp : Transformer_BinaryOp<"mul">;

def Transformer_ActivateOp : Transformer_CompositeOp<"activate", [SameOperandsAndResultType]> {
  let summary = "An elementwise activation function";
  let description = [{
    `gelu_tanh` is 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), `gelu` the
    exact one with erf (Hendrycks and Gimpel, arXiv 1606.08415), `silu` is
    x sigmoid(x), `sigmoid` 1 / (1 + e^-x).
    ```mlir
    %y = transformer.activate gelu_tanh %x : tensor<8xf32, #transformer.dims<ffn>>
    ```
  }];
  let arguments = (ins Transformer_ActivationAttr:$function, Transformer_FloatTensor:$input);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$function $input attr-dict `:` type($result)";
}

def Transformer_SoftmaxOp : Transformer_CompositeOp<"softmax", [SameOperandsAndResultType]> {
  let summary = "e^x over the sum of e^x along the last dim: weights of experts";
  let description = [{
    What it is made of stays f32 where `top_k` or `pick` reads the result.
    (C1) the input is f32 and has a dim.
    ```mlir
    %y = transformer.softmax %x : tensor<4x8xf32, #transformer.dims<sequence, routed>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$input);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_LayerNormOp : Transformer_CompositeOp<"layer_norm", [
    AllTypesMatch<["input", "result"]>, AllTypesMatch<["weight", "bias"]>]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * weight + bias over the weight's dims";
  let description = [{
    Ba et al., arXiv 1607.06450; the variance is the biased one.
    (C1) the dims of `weight` (and `bias`) are among the input's, with equal sizes, all known.
    (C2) `epsilon` is positive.
    ```mlir
    %y = transformer.layer_norm %x, %w, %b epsilon 1.0e-5 : tensor<4x8xf32, #transformer.dims<sequence, embed>>,
        tensor<8xf32, #transformer.dims<embed>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$input, Transformer_FloatTensor:$weight, Transformer_FloatTensor:$bias, F64Attr:$epsilon);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$input `,` $weight `,` $bias `epsilon` $epsilon attr-dict `:` type($input) `,` type($weight)";
  let hasVerifier = 1; // C1 C2
}

def Transformer_RmsNormOp : Transformer_CompositeOp<"rms_norm", [AllTypesMatch<["input", "result"]>]> {
  let summary = "x / sqrt(mean(x^2) + epsilon) * weight over the weight's dims";
  let description = [{
    Zhang and Sennrich, arXiv 1910.07467.
    (C1) the dims of `weight` are among the input's, with equal sizes, all known.
    (C2) `epsilon` is positive.
    ```mlir
    %y = transformer.rms_norm %x, %w epsilon 1.0e-6 : tensor<4x8xf32, #transformer.dims<sequence, embed>>,
        tensor<8xf32, #transformer.dims<embed>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$input, Transformer_FloatTensor:$weight, F64Attr:$epsilon);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$input `,` $weight `epsilon` $epsilon attr-dict `:` type($input) `,` type($weight)";
  let hasVerifier = 1; // C1 C2
}

def Transformer_StandardizeOp : Transformer_CompositeOp<"standardize", [SameOperandsAndResultType]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) along the last dim: layer_norm without weight and bias";
  let description = [{
    The variance is the biased one.
    (C1) the last dim has a size.
    (C2) `epsilon` is positive.
    ```mlir
    %y = transformer.standardize %x epsilon 1.0e-5 : tensor<4x8xf32, #transformer.dims<sequence, embed>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$input, F64Attr:$epsilon);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$input `epsilon` $epsilon attr-dict `:` type($input)";
  let hasVerifier = 1; // C1 C2
}

def Transformer_RopeOp : Transformer_CompositeOp<"rope", [SameOperandsAndResultType]> {
  let summary = "Rotary position embedding of the last dim along `sequence`";
  let description = [{
    Su et al., arXiv 2104.09864, in the half-split form of the Llama family:
    element d of the first half turns with element d of the second by the angle
    position * inverse_frequencies[d]; `scale` multiplies cosine and sine. Every
    scaling variant (linear, llama3, yarn) is a choice of these numbers. With
    fewer frequencies than half of the last dim, its first elements turn, two
    for each frequency, and those behind stay as they are (GPT-NeoX, Phi).
    (C1) the input has a dim `sequence` and, last, another.
    (C2) there is an inverse frequency, and the last dim is at least twice their number.
    ```mlir
    %y = transformer.rope %x inverse_frequencies [1.0, 0.01] scale 1.0
        : tensor<1x8x2x4xf32, #transformer.dims<batch, sequence, heads, head_dim>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$input, DenseF32ArrayAttr:$inverse_frequencies, F32Attr:$scale);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$input `inverse_frequencies` $inverse_frequencies `scale` $scale attr-dict `:` type($result)";
  let hasVerifier = 1; // C1 C2
}

def Transformer_DropoutOp : Transformer_CompositeOp<"dropout", [SameOperandsAndResultType]> {
  let summary = "Zeroes elements with probability `rate`, scales the others by 1 / (1 - rate)";
  let description = [{
    Which elements is a function of the seed, the step, `name` and the element's
    index in the step's global tensor, of nothing else (Salmon et al., SC'11).
    (C1) 0 <= rate < 1.
    ```mlir
    %y = transformer.dropout %x "h.0.attn.resid" rate 1.0e-1
        : tensor<1x8x4xf32, #transformer.dims<batch, sequence, embed>>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$input, StrAttr:$name, F64Attr:$rate);
  let results = (outs Transformer_FloatTensor:$result);
  let assemblyFormat = "$input $name `rate` $rate attr-dict `:` type($result)";
  let hasVerifier = 1; // C1
}

def Transformer_HeadLossOp : Transformer_Op<"head_loss", [Pure, Transformer_FactorsFromNames,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<FactorOpInterface, ["getFlops"]>]> {
  let summary = "Language-model head fused with cross-entropy: the sum over tokens of -log softmax(hidden . weight)[target]";
  let description = [{
    `scale` multiplies the sum; `-transformer-bind` sets it to one over the
    number of tokens of a step, so that sums over microbatches and ranks give
    the mean. The logits of a whole microbatch are never held. With `counted`
    a token whose target is negative adds nothing, and the sum is divided by
    `counted`, or by 1 where it is less (-transformer-count-targets). With a
    `cap` logits z become cap tanh(z / cap) first; 0: they stay.
    (C1) `hidden` is [token dims..., embed], `weight` [vocab, embed] and
         `targets` [token dims...], with equal sizes where names are equal; the loss is a `tensor<f32>`.
    (C2) `scale` is finite, `cap` too and not negative, `counted` a `tensor<f32>`.
    ```mlir
    %loss = transformer.head_loss %h, %w, %t scale 1.0 cap 3.0e1 : tensor<1x8x4xf32, #transformer.dims<batch, sequence, embed>>,
        tensor<16x4xf32, #transformer.dims<vocab, embed>>, tensor<1x8xi32, #transformer.dims<batch, sequence>> -> tensor<f32>
    ```
  }];
  let arguments = (ins Transformer_FloatTensor:$hidden, Transformer_FloatTensor:$weight, Transformer_IdTensor:$targets,
    Optional<Transformer_FloatTensor>:$counted, F64Attr:$scale, DefaultValuedAttr<F64Attr, "0.0">:$cap);
  let results = (outs Transformer_FloatTensor:$loss);
  let assemblyFormat = "$hidden `,` $weight `,` $targets (`counted` `(` $counted^ `:` type($counted) `)`)? `scale` $scale (`cap` $cap^)? attr-dict `:` type($hidden) `,` type($weight) `,` type($targets) `->` type($loss)";
  let hasVerifier = 1; // C1 C2
}

def Transformer_AuxiliaryLossOp : Transformer_Op<"auxiliary_loss", [MemoryEffects<[MemWrite]>]> {
  let summary = "A number that training makes smaller beside the loss, and that a step tells under its own name";
  let description = [{
    Gradients are those of the function's loss plus `coefficient` times `value`, for each such op. The loss that a step
    tells is the function's alone. Ops of one name add up. Of several microbatches the mean counts, as of the loss.
    (C1) `value` is a `tensor<f32>`, `coefficient` finite.
    (C2) `name` has at most 32 lower-case letters, digits and _, a letter first.
    ```mlir
    transformer.auxiliary_loss "balance_loss" coefficient 0.01, %balance : tensor<f32>
    ```
  }];
  let arguments = (ins StrAttr:$name, F64Attr:$coefficient, Transformer_FloatTensor:$value);
  let assemblyFormat = "$name `coefficient` $coefficient `,` $value attr-dict `:` type($value)";
  let hasVerifier = 1; // C1 C2
}

#endif // MESHWORK_TRANSFORMER_MODEL_OPS
