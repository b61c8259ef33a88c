// What some op reads in f32, whatever is stored around it.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace meshwork::transform {

/// Results that some op reads in f32, itself or behind what maps or moves their
/// elements. What is stored for a step keeps its type.
class ReadInF32 {
public:
  explicit ReadInF32(mlir::func::FuncOp function);
  bool contains(mlir::Value result) const { return results.contains(result); }

private:
  bool isRead(mlir::OpOperand &use) const;

  llvm::DenseSet<mlir::Value> results;
};

} // namespace meshwork::transform
