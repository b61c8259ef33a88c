// From kernels to the LLVM dialect, whatever machine they are for: functions of
// math become arithmetic first, so that none is left to a library; the rest is
// one conversion.
#pragma once

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/PatternMatch.h"

namespace meshwork::codegen {

/// What a machine has of its own for functions of math.
struct MathOfMachine {
  llvm::StringRef name; // for messages: "CPU"
  /// Preferred to upstream's polynomials.
  void (*populateExpansion)(mlir::RewritePatternSet &patterns);
  /// Whether its back end turns `op` into instructions by itself, besides those
  /// that every machine does.
  bool (*hasInstruction)(mlir::Operation *op);
};

/// Fails with an error at an op that is left.
mlir::LogicalResult approximateMath(mlir::Operation *kernels,
                                    const MathOfMachine &machine);

/// Those of scf, cf, arith and vector.
void populateLowering(const mlir::LLVMTypeConverter &converter,
                      mlir::RewritePatternSet &patterns);

} // namespace meshwork::codegen
