// The distinct kernels of a program.
#pragma once

#include "passes/schedule/Placement.h"

namespace meshwork::schedule {

/// Attribute of a kernel function: strides of each operand, then each result.
inline constexpr llvm::StringLiteral stridesName = "schedule.strides";

/// Collects clusters as functions of the module, one for all that are equal in
/// body, shapes and strides.
class Kernels {
public:
  explicit Kernels(::mlir::ModuleOp module) : module(module) {}
  /// The function that holds `op` for these places (operands, then results).
  ::mlir::FlatSymbolRefAttr add(transformer::FusedOp op,
                                ::llvm::ArrayRef<Place> places);

private:
  ::mlir::ModuleOp module;
  ::llvm::StringMap<::mlir::func::FuncOp> known; // by text
};

} // namespace meshwork::schedule
