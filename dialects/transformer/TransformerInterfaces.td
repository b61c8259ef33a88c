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

#endif // MESHWORK_TRANSFORMER_INTERFACES
