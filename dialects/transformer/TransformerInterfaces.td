// What every op tells about itself once, for all who ask: sharding
// propagation, cost, fusion, autodiff and verification.
#ifndef MESHWORK_TRANSFORMER_INTERFACES
#define MESHWORK_TRANSFORMER_INTERFACES

include "mlir/IR/OpBase.td"

def FactorOpInterface : OpInterface<"FactorOpInterface"> {
  let cppNamespace = "::meshwork::transformer";
  let description = [{
    An op's computation as a loop nest over *factors*. A factor is one loop; each
    dim of an operand or result runs along one factor. A factor that some
    operand has and a result lacks is reduced there.
  }];
  let methods = [
    InterfaceMethod<"The loops of this op, outermost first.",
      "::llvm::SmallVector<::meshwork::transformer::Factor>", "getFactors", (ins), [{}],
      [{ return ::meshwork::transformer::factorsFromNames($_op.getOperation()); }]>,
    InterfaceMethod<"Model flops of one execution; a multiply-add is two. Elementwise work counts as none.",
      "uint64_t", "getFlops", (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<"Least memory traffic in bytes: each operand and result once.",
      "uint64_t", "getBytes", (ins), [{}],
      [{ return ::meshwork::transformer::bytesOfValues($_op.getOperation()); }]>
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
