// What every op tells about itself once, for all who ask: sharding
// propagation, cost, fusion, autodiff and verification.
#ifndef MESHWORK_TRANSFORMER_INTERFACES
#define MESHWORK_TRANSFORMER_INTERFACES

include "mlir/IR/OpBase.td"

/// What an op answers by naming it among its traits (Answers.h). The methods
/// below have no answers of their own: of an op that neither has the method nor
/// names an answer the C++ compiler says that a member `...ByTrait` is missing.
class Transformer_Answer<string question, string answer> : ParamNativeOpTrait<question, answer> {
  let cppNamespace = "::meshwork::transformer::answers";
}
/// To a question with only one that needs no method.
class Transformer_OnlyAnswer<string answer> : NativeOpTrait<answer> {
  let cppNamespace = "::meshwork::transformer::answers";
}

def FactorOpInterface : OpInterface<"FactorOpInterface"> {
  let cppNamespace = "::meshwork::transformer";
  let description = [{
    An op's computation as a loop nest over *factors*. A factor is one loop; each
    dim of an operand or result runs along one factor. A factor that some
    operand has and a result lacks is reduced there.
  }];
  let methods = [
    InterfaceMethod<"The loops of this op, outermost first.",
      "::llvm::SmallVector<::meshwork::transformer::Factor>", "getFactors", (ins), [{}], [{ return $_op.factorsByTrait(); }]>,
    InterfaceMethod<"Model flops of one execution; a multiply-add is two. Elementwise work counts as none.",
      "uint64_t", "getFlops", (ins), [{}], [{ return $_op.flopsByTrait(); }]>
  ];
}
/// Dims of one name are one loop; names that only operands have are reductions.
def Transformer_FactorsFromNames : Transformer_Answer<"Factors", "::meshwork::transformer::factorsFromNames">;
def Transformer_NoProducts : Transformer_Answer<"Flops", "0">;

def TensorOpInterface : OpInterface<"TensorOpInterface"> {
  let cppNamespace = "::meshwork::transformer";
  let description = "What passes ask an op of a step, before it is fused or lowered.";
  let methods = [
    InterfaceMethod<"Whether it adds up elements of its operands and multiplies them by what is no operand: partial sums may go through it.",
      "bool", "isLinear", (ins), [{}], [{ return $_op.linearByTrait(); }]>,
    InterfaceMethod<"Whether it maps or moves elements, so that its operands and results had better be sharded alike.",
      "bool", "isElementwise", (ins), [{}], [{ return $_op.elementwiseByTrait(); }]>,
    InterfaceMethod<"Whether that result is f32 whatever the compute type, as sums and tables are that would lose too much.",
      "bool", "staysF32", (ins "unsigned":$result), [{}], [{ return $_op.f32ByTrait(); }]>,
    InterfaceMethod<"Whether it reads that operand in f32 whatever the compute type: what makes it, back to a product, then stays f32, too.",
      "bool", "readsF32", (ins "unsigned":$operand), [{}], [{ return $_op.readsF32ByTrait(); }]>,
    InterfaceMethod<"What it takes to run it again in the backward pass, where its results are not kept.",
      "::meshwork::transformer::Again", "getAgain", (ins), [{}], [{ return $_op.againByTrait(); }]>,
    InterfaceMethod<"What it has to do with the gradient of a weight.",
      "::meshwork::transformer::WeightGradient", "getWeightGradient", (ins), [{}], [{ return $_op.weightGradientByTrait(); }]>,
    InterfaceMethod<"Whether fusion makes kernels of it and others like it.",
      "bool", "isFusible", (ins), [{}], [{ return $_op.fusibleByTrait(); }]>,
    InterfaceMethod<"What its operands must have in the padding of a part that ends before its storage does; `of` tells what they have.",
      "::meshwork::transformer::PaddingNeeds", "getPaddingNeeds", (ins "::meshwork::transformer::PaddingOf":$of),
      [{}], [{ return $_op.paddingNeedsByTrait(); }]>,
    InterfaceMethod<[{
      What a result has in the padding along a dim, once the needs are met.
      `overlaps` tells whether padding stands at indices that another rank has.
      }], "::meshwork::transformer::Padding", "getPadding",
      (ins "unsigned":$result, "unsigned":$dim, "::meshwork::transformer::PaddingOf":$of, "::llvm::function_ref<bool()>":$overlaps),
      [{}], [{ return $_op.paddingByTrait(); }]>,
    InterfaceMethod<"What it does with what outlives a microbatch.",
      "::meshwork::transformer::StateUse", "getStateUse", (ins), [{}], [{ return $_op.stateUseByTrait(); }]>,
    InterfaceMethod<"Which state that is; none if it uses none.",
      "::std::optional<::meshwork::transformer::StateKey>", "getUsedState", (ins), [{}], [{ return $_op.usedStateByTrait(); }]>,
    InterfaceMethod<"Whether what computes that result can add it to what is there, so that no kernel of its own need do so.",
      "bool", "addsUp", (ins "unsigned":$result), [{}], [{ return $_op.addsUpByTrait(); }]>,
    InterfaceMethod<"Whether it draws random words by the number of a sample: a rank then computes it for the samples that it was given.",
      "bool", "drawsWords", (ins), [{}], [{ return $_op.drawsByTrait(); }]>,
    InterfaceMethod<"Whether what it reads is there from the start, so that its place in the text need keep nothing from running early.",
      "bool", "isSource", (ins), [{}], [{ return $_op.sourceByTrait(); }]>,
    InterfaceMethod<"Sizes of it that a GPU's kernels limit.",
      "::llvm::SmallVector<::meshwork::transformer::KernelSize>", "getKernelSizes", (ins), [{}], [{ return $_op.kernelSizesByTrait(); }]>,
    InterfaceMethod<"Sets what it must know of a rank's part, as it counts positions in the whole. Types are still the whole's.",
      "void", "tellPart", (ins "::meshwork::transformer::RankPart &":$part), [{}], [{ $_op.partByTrait(); }]>
  ];
}
class Transformer_Linear<string yes> : Transformer_Answer<"Linear", yes>;
class Transformer_Elementwise<string yes> : Transformer_Answer<"Elementwise", yes>;
class Transformer_StaysF32<string yes> : Transformer_Answer<"StaysF32", yes>;
class Transformer_ReadsF32<string yes> : Transformer_Answer<"ReadsF32", yes>;
class Transformer_Again<string what> : Transformer_Answer<"RunAgain", "::meshwork::transformer::Again::" # what>;
class Transformer_WeightGradient<string role> : Transformer_Answer<"OfWeightGradient", "::meshwork::transformer::WeightGradient::" # role>;
class Transformer_Fusible<string yes> : Transformer_Answer<"Fusible", yes>;
def Transformer_TakesPadding : Transformer_OnlyAnswer<"TakesPadding">;
class Transformer_LeavesPadding<string what> : Transformer_Answer<"LeavesPadding", "::meshwork::transformer::" # what # "Padding">;
def Transformer_CountsNothing : Transformer_OnlyAnswer<"CountsNothing">;
class Transformer_StateUse<string use> : Transformer_Answer<"UsesState", "::meshwork::transformer::StateUse::" # use>;
class Transformer_AddsUp<string yes> : Transformer_Answer<"AddsUp", yes>;
class Transformer_DrawsWords<string yes> : Transformer_Answer<"DrawsWords", yes>;
class Transformer_Source<string yes> : Transformer_Answer<"Source", yes>;
def Transformer_NoKernelSizes : Transformer_OnlyAnswer<"NoKernelSizes">;
/// Of ops that neither map nor move elements.
defvar Transformer_Apart = [Transformer_Linear<"false">, Transformer_Elementwise<"false">, Transformer_Fusible<"false">, Transformer_ReadsF32<"false">];

def AttentionOpInterface : OpInterface<"AttentionOpInterface"> {
  let cppNamespace = "::meshwork::transformer";
  let description = "Attention and its gradient: ops of queries and keys, whose sequence ranks may share.";
  let methods = [
    InterfaceMethod<"Queries.", "::mlir::Value", "getQ">,
    InterfaceMethod<"Keys.", "::mlir::Value", "getK">,
    InterfaceMethod<"Values.", "::mlir::Value", "getV">,
    InterfaceMethod<"What attention makes of them.", "::mlir::Value", "getOut", (ins), [{ return $_op.getResult(); }]>,
    InterfaceMethod<"The log-sum-exp of each row.", "::mlir::Value", "getLse">,
    InterfaceMethod<"How its results over parts of the keys make those over all keys.", "::meshwork::transformer::OverKeys", "getOverKeys">,
    InterfaceMethod<"All that it is told beside these.", "::meshwork::transformer::AttentionPart", "getPart",
      (ins), [{}], [{ return ::meshwork::transformer::AttentionPart($_op); }]>,
    InterfaceMethod<"The part's numbers.", "::meshwork::transformer::AttentionAttr", "getTerms">,
    InterfaceMethod<"The same, said anew.", "void", "setTermsAttr", (ins "::meshwork::transformer::AttentionAttr":$terms)>,
    InterfaceMethod<"Keys, to be replaced.", "::mlir::OpOperand &", "getKMutable">,
    InterfaceMethod<"Values, to be replaced.", "::mlir::OpOperand &", "getVMutable">,
    InterfaceMethod<"Which key each row of these is, to be replaced.", "::mlir::MutableOperandRange", "getKeysMutable">,
    InterfaceMethod<"Which query each row is, to be replaced.", "::mlir::MutableOperandRange", "getPositionsMutable">,
    InterfaceMethod<"What dropout draws by, to be replaced.", "::mlir::MutableOperandRange", "getRandomMutable">
  ];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::meshwork::transformer";
  let description = "A primitive op that knows the gradients of its operands.";
  let methods = [
    InterfaceMethod<[{
      Builds, at `builder`, the gradients of this op's operands from those of its
      results (null where a result has none). Returns one value per operand,
      null where `needed` is false or the gradient is zero.
      }],
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildGradients",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGradients,
           "::llvm::ArrayRef<bool>":$needed)>
  ];
}

def DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::meshwork::transformer";
  let description = "A model op with an equal in primitive ops.";
  let methods = [
    InterfaceMethod<"Builds the equal of this op at `builder`; the value replaces its result.",
      "::mlir::Value", "decompose", (ins "::mlir::OpBuilder &":$builder)>
  ];
}

def DrawOpInterface : OpInterface<"DrawOpInterface"> {
  let cppNamespace = "::meshwork::transformer";
  let description = [{
    An op in the body of a `map` that draws a random word by the element's
    position in the iteration space, the same wherever the element is computed:
    the first word of Philox4x32-10 with key (seed, stream) and counter (index
    low, index high, step, 0). The index is the row-major position, counted
    along `batch` from `first_sample`. In a rank's part of a space, `space` has
    the sizes of the whole and `offsets` say where the part begins along `dims`.
    Operands begin with the seed, the step, the first sample and the offsets.
  }];
  let methods = [
    InterfaceMethod<"Which of the seed's streams the word is from.", "uint32_t", "getStream">,
    InterfaceMethod<"Where a rank's part begins, i32, one for each of `dims`.", "::mlir::OperandRange", "getOffsets">,
    InterfaceMethod<"The offsets, to be replaced.", "::mlir::MutableOperandRange", "getOffsetsMutable">,
    InterfaceMethod<"Sizes of the whole space where this is a part of it.", "::std::optional<::llvm::ArrayRef<int64_t>>", "getSpace">,
    InterfaceMethod<"The dims that the offsets are along.", "::mlir::ArrayAttr", "getDimsAttr">,
    InterfaceMethod<"Makes it a part of a space of these sizes.", "void", "setSpaceAttr", (ins "::mlir::DenseI64ArrayAttr":$space)>,
    InterfaceMethod<"Names the dims of the offsets.", "void", "setDimsAttr", (ins "::mlir::ArrayAttr":$dims)>
  ];
}

#endif // MESHWORK_TRANSFORMER_INTERFACES
