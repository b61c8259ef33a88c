// Attributes and enums of the transformer dialect.
#ifndef MESHWORK_TRANSFORMER_ATTRS
#define MESHWORK_TRANSFORMER_ATTRS

include "dialects/transformer/TransformerDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"
include "meshwork/Plan/Enums.td"

class Transformer_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Transformer_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Transformer_DimsAttr : Transformer_Attr<"Dims", "dims", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding, ["verifyEncoding"]>]> {
  let summary = "The logical names of a tensor's dims";
  let description = [{
    The encoding of every tensor of this dialect that has dims. Names are
    distinct within a tensor. Three have a meaning of their own (Dims.h): `batch` is
    the dim of samples, along which `dropout` counts; `sequence` is the dim of
    tokens; `chunk` is the dim of the parts of a sum, and fusion alone makes it.
    What another dim is for, such as heads, is told by the ops that read it.
    ```mlir
    tensor<4x512x768xf32, #transformer.dims<batch, sequence, embed>>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Position of `name`, or -1.
    int64_t find(::mlir::StringAttr name) const;
    static DimsAttr get(::mlir::MLIRContext *context,
                        ::llvm::ArrayRef<::llvm::StringRef> names);
  }];
}

// Tensors of this dialect. Scalars (`tensor<f32>`) have no dims to name.
class Transformer_TensorType<string elements, string predicate>
    : Type<And<[CPred<"::meshwork::transformer::isNamedTensor($_self)">, CPred<predicate>]>,
           "tensor of " # elements # " whose dims have names", "::mlir::RankedTensorType">;
def Transformer_Tensor : Transformer_TensorType<"f32, bf16, f8, i8 or i32", "true">;
def Transformer_FloatTensor : Transformer_TensorType<"f32 or bf16",
    "::meshwork::transformer::isWideFloat(::llvm::cast<::mlir::RankedTensorType>($_self).getElementType())">;
def Transformer_KeptTensor : Transformer_TensorType<"f32, bf16 or i32",
    "!::meshwork::transformer::isNarrow(::llvm::cast<::mlir::RankedTensorType>($_self).getElementType())">;
// f8 only exists between a map that quantizes and what reads it.
def Transformer_ProductTensor : Transformer_TensorType<"f32, bf16 or f8",
    "::llvm::isa<::mlir::FloatType>(::llvm::cast<::mlir::RankedTensorType>($_self).getElementType())">;
def Transformer_ScaleTensor : Transformer_TensorType<"one f32",
    "::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 0 && ::llvm::cast<::mlir::RankedTensorType>($_self).getElementType().isF32()">;
def Transformer_IdTensor : Transformer_TensorType<"i32",
    "::llvm::cast<::mlir::RankedTensorType>($_self).getElementType().isInteger(32)">;

class Transformer_Enum<string name, string summary, list<I32EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::meshwork::transformer";
}
class Transformer_EnumAttr<EnumInfo info, string mnemonic>
    : EnumAttr<Transformer_Dialect, info, mnemonic> {
  let assemblyFormat = "$value";
}

def Transformer_InitKind : Transformer_Enum<"InitKind", "distribution of initial values", PlanInitKind>;
def Transformer_InitAttr : Transformer_Attr<"Init", "init"> {
  let summary = "Where a parameter's values start";
  let description = "`constant, value`; `normal, mean, standard deviation`; `uniform, low, high`.";
  let parameters = (ins EnumParameter<Transformer_InitKind>:$kind, "::mlir::FloatAttr":$a, "::mlir::FloatAttr":$b);
  let hasCustomAssemblyFormat = 1;
}

def Transformer_FileAttr : Transformer_Attr<"File", "file"> {
  let summary = "Tensors of files, each with a part of a parameter";
  let description = [{
    One tensor, or as many as dim number `along` of the parameter has indices:
    then `{}` stands for the number in the name, alone between dots, and counts
    up `from` a number (0). `at` and `size` tell which box of the parameter they
    hold (all of it), `shape` the shape of one tensor (the box without the
    counted dim). A tensor that holds more than its part says where the part
    begins in it: `offset`, in the dims of `shape`.
    ```mlir
    #transformer.file<"h.0.experts.{}.w1" along 0 from 1>
    #transformer.file<"h.0.experts.up" at [0, 0, 0] size [4, 8, 16] shape [4, 16, 16] offset [0, 8, 0]>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$pattern, "int32_t":$along, "int64_t":$first,
                        OptionalArrayRefParameter<"int64_t">:$begin, OptionalArrayRefParameter<"int64_t">:$extent,
                        OptionalArrayRefParameter<"int64_t">:$shape, OptionalArrayRefParameter<"int64_t">:$offset);
  let hasCustomAssemblyFormat = 1;
}
def Transformer_FilesAttr : TypedArrayAttrBase<Transformer_FileAttr, "list of #transformer.file">;
def Transformer_OtherFilesAttr : TypedArrayAttrBase<Transformer_FilesAttr, "list of lists of #transformer.file">;

def Transformer_Reduction : Transformer_Enum<"Reduction", "how a reduction combines", [
  I32EnumCase<"add", 0>, I32EnumCase<"max", 1>]>;
def Transformer_ReductionAttr : Transformer_EnumAttr<Transformer_Reduction, "reduction">;

def Transformer_Activation : Transformer_Enum<"Activation", "elementwise function", [
  I32EnumCase<"gelu_tanh", 0>, I32EnumCase<"gelu", 1>, I32EnumCase<"silu", 2>, I32EnumCase<"relu", 3>, I32EnumCase<"sigmoid", 4>]>;
def Transformer_ActivationAttr : Transformer_EnumAttr<Transformer_Activation, "activation">;

def Transformer_StateKind : Transformer_Enum<"StateKind", "what is kept between microbatches or steps", [
  I32EnumCase<"weight", 0>, I32EnumCase<"master", 1>, I32EnumCase<"gradient", 2>,
  I32EnumCase<"optimizer", 3>, I32EnumCase<"loss", 4>, I32EnumCase<"grad_norm", 5>,
  I32EnumCase<"magnitude", 6>, I32EnumCase<"saturated", 7>, I32EnumCase<"metric", 8>]>;
def Transformer_StateKindAttr : Transformer_EnumAttr<Transformer_StateKind, "state">;

def Transformer_StepInput : Transformer_Enum<"StepInput", "a scalar the launcher gives", [
  I32EnumCase<"learning_rate", 0>, I32EnumCase<"bias_correction", 1>, I32EnumCase<"seed", 2>,
  I32EnumCase<"step", 3>, I32EnumCase<"first_sample", 4>]>;
def Transformer_StepInputAttr : Transformer_EnumAttr<Transformer_StepInput, "step_input">;

def Transformer_StageList : Transformer_Enum<"StageList", "a list of a pipeline's stage", [
  I32EnumCase<"forward", 0>, I32EnumCase<"backward", 1>, I32EnumCase<"input_grad", 2>, I32EnumCase<"weight_grad", 3>]>;
def Transformer_StageListAttr : Transformer_EnumAttr<Transformer_StageList, "stage_list">;

def Transformer_PassKind : Transformer_Enum<"PassKind", "which pass of a step an op belongs to", [
  I32EnumCase<"forward", 0>, I32EnumCase<"backward", 1>, I32EnumCase<"recomputed", 2>]>;
def Transformer_PassAttr : Transformer_EnumAttr<Transformer_PassKind, "pass"> {
  let summary = "Which pass of a step an op belongs to; `recomputed` ops repeat forward ones within the backward pass";
  let assemblyFormat = "`<` $value `>`";
}

def Transformer_Sharing : Transformer_Enum<"Sharing", "how ranks with parts of a sequence compute attention", [
  I32EnumCase<"none", 0>, I32EnumCase<"gathered", 1>, I32EnumCase<"ulysses", 2>, I32EnumCase<"ring", 3>]>;
def Transformer_AttentionAttr : Transformer_Attr<"Attention", "attention"> {
  let summary = "What attention and its gradient are told in numbers";
  let description = [{
    The mask (`causal`, `window`; 0: none), the `scale` of scores, their `cap`, the name and rate of dropout. With a cap
    scaled scores s become cap tanh(s / cap); 0: they stay (Gemma Team, arXiv 2408.00118). On a rank `heads` and `keys`
    count those of the whole, by which dropout numbers elements; 0: what is there is all. `shared` is how ranks with parts of a
    sequence compute it: `none`, each all of it; `gathered`, its queries with all keys; `ulysses`, some heads of all; `ring`,
    its queries with the keys of one rank after the other. Ops print it without its name. What has its default is left out.
    ```mlir
    #transformer<attention causal scale 5.0e-1 cap 3.0e1 window 4 dropout "attn" rate 1.0e-1 heads 16 keys 64 shared ring>
    ```
  }];
  let parameters = (ins "bool":$causal, APFloatParameter<"">:$scale, APFloatParameter<"">:$cap, "int64_t":$window, StringRefParameter<>:$dropout_name, APFloatParameter<"">:$rate,
                        "int64_t":$total_heads, "int64_t":$total_keys, EnumParameter<Transformer_Sharing>:$sharing);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// What one rank, or a small model, has in another way.
    struct Change {
      ::std::optional<int64_t> window = {}, totalHeads = {}, totalKeys = {};
      ::std::optional<Sharing> sharing = {};
    };
    AttentionAttr with(const Change &change) const;
    /// Of dropout's random words.
    uint32_t getStream() const;
  }];
}

// Without "none", which no op has.
def Transformer_Epilogue : Transformer_Enum<"Epilogue", "what a product does beside multiplying", !tail(PlanEpilogue)>;
def Transformer_EpilogueAttr : Transformer_EnumAttr<Transformer_Epilogue, "epilogue">;

#endif // MESHWORK_TRANSFORMER_ATTRS
