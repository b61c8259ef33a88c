// What is the same on all ranks along an axis of the mesh.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace meshwork::pipeline {

/// The values of a rank's step that are the same, bit for bit, on all ranks
/// that differ only along `axis`. They come out of a reduction or a gather over
/// it, or are computed from such values alone. Do not ask for an axis that
/// splits the batch: arguments do not say that they differ along it.
class Uniform {
public:
  Uniform(::mlir::func::FuncOp step, ::mlir::StringAttr axis);
  bool contains(::mlir::Value value) const { return same.contains(value); }

private:
  bool names(::mlir::Attribute attribute) const;
  bool makesSame(::mlir::Operation *op) const;

  ::mlir::StringAttr axis;
  ::llvm::DenseSet<::mlir::Value> same;
};

} // namespace meshwork::pipeline
