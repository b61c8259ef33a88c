// What instructions have in common.
#ifndef MESHWORK_SCHEDULE_INTERFACES
#define MESHWORK_SCHEDULE_INTERFACES

include "mlir/IR/OpBase.td"

def Schedule_InstructionOpInterface : OpInterface<"InstructionOpInterface"> {
  let cppNamespace = "::meshwork::schedule";
  let description = [{
    Something that runs. Its operands are views that it reads, then views that
    it writes; one that adds to a view writes it.
  }];
  let methods = [
    InterfaceMethod<"How many of the last operands are written.", "unsigned", "countWrites">,
    InterfaceMethod<"Where it comes from, for people.", "::llvm::StringRef", "getSource">,
    InterfaceMethod<"Floating-point operations; a multiply-add is two.", "uint64_t", "getFlops">,
    InterfaceMethod<"Least traffic: each operand once.", "uint64_t", "getBytes">,
    InterfaceMethod<"The channel on which it is started, to run beside what follows until a wait; 0: it is done before that.", "uint64_t", "startsOn">];
  let extraClassDeclaration = [{
    ::mlir::OperandRange getReads() { return (*this)->getOperands().drop_back(countWrites()); }
    ::mlir::OperandRange getWrites() { return (*this)->getOperands().take_back(countWrites()); }
  }];
  let verify = "return ::meshwork::schedule::verifyInstruction($_op);";
}

#endif // MESHWORK_SCHEDULE_INTERFACES
