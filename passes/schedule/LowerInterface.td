// How an op of a step becomes part of a program. Ops stand below this folder and
// know nothing of it, so each has its answers in one of Lower*.cpp.
#ifndef MESHWORK_LOWER_INTERFACE
#define MESHWORK_LOWER_INTERFACE

include "mlir/IR/OpBase.td"

def LowerOpInterface : OpInterface<"LowerOpInterface"> {
  let cppNamespace = "::meshwork::schedule";
  let methods = [
    InterfaceMethod<"Whether it has an instruction, around which copies are made. Else it says where bytes of others lie.",
                    "bool", "hasInstruction">,
    InterfaceMethod<"Whether its result is a part of its operand, and lies there if it can.", "bool", "isViewOfOperand">,
    InterfaceMethod<"Whether it may need what collectives in an open bucket bring.", "bool", "needsBucket">,
    InterfaceMethod<"Writes it at the end of the list. Fails with an error at the op.",
                    "::llvm::LogicalResult", "lower", (ins "::meshwork::schedule::Lowering &":$to)>];
}

#endif // MESHWORK_LOWER_INTERFACE
