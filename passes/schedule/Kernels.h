// The distinct kernels of a program.
#pragma once

#include "passes/schedule/Placement.h"

#include <map>
#include <vector>

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
  /// By all that makes a kernel, see Identity in Kernels.cpp. Nothing goes by
  /// the order of this map: it is not the same in two runs.
  std::map<std::vector<uintptr_t>, ::mlir::func::FuncOp> known;
};

} // namespace meshwork::schedule
