// The functions of a module, by what they are for. The symbol is what declares
// it, as that of `main` does elsewhere: a module has at most one of each.
// Passes ask here, and compare no names.
//
//   func::FuncOp update = functionOf(module, StepFunction::update);
//   if (roleOf(op) == StepFunction::update) ...
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::transformer {

enum class StepFunction {
  loss,       // a model, until autodiff
  microbatch, // forward and backward pass, once for each microbatch
  update      // the optimizer, once a step
};

::llvm::StringRef symbolOf(StepFunction which);
/// Null where `module` has none.
::mlir::func::FuncOp functionOf(::mlir::ModuleOp module, StepFunction which);
/// For a pass that needs it: null, and an error, where `module` has none.
::mlir::func::FuncOp microbatchOf(::mlir::ModuleOp module);
/// Of the function that `op` is or stands in; none of any other function.
std::optional<StepFunction> roleOf(::mlir::Operation *op);

} // namespace meshwork::transformer
