// The distinct kernels of a program.
#pragma once

#include "passes/schedule/Placement.h"

#include <map>
#include <vector>

namespace meshwork::schedule {

/// Attribute of a kernel function: strides of each operand, then each result.
inline constexpr llvm::StringLiteral stridesName = "schedule.strides";

/// What equal clusters share.
struct Kernel {
  ::mlir::func::FuncOp function;
  int64_t flops = 0, items = 0; // see passes/codegen/KernelEmitter.h
};

/// Collects clusters as functions of the module, one for all that are equal in
/// body, shapes and strides.
class Kernels {
public:
  explicit Kernels(::mlir::ModuleOp module) : module(module) {}
  /// The kernel of `op` for these places (operands, then results).
  Kernel add(transformer::FusedOp op, ::llvm::ArrayRef<Place> places);

private:
  ::mlir::ModuleOp module;
  /// By all that makes a kernel, see Identity in Kernels.cpp. Nothing goes by
  /// the order of this map: it is not the same in two runs.
  std::map<std::vector<uintptr_t>, Kernel> known;
};

} // namespace meshwork::schedule
