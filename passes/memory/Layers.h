// Which layer of the model each op of the forward pass belongs to.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace meshwork::memory {

/// The layers of @microbatch. A parameter declares its layer; an op's is the
/// last of its operands'. What runs before any layer is in layer -1, what
/// reads other parameters after a layer is in layer count(). An op between two
/// layers that only reads what crosses the border anyway (the statistics of a
/// norm) belongs to the later one.
class Layers {
public:
  explicit Layers(::mlir::func::FuncOp function);

  int64_t of(::mlir::Operation *op) const { return layer.lookup_or(op, -1); }
  int64_t count() const { return numLayers; }
  /// Whether `op` depends on parameters, tables and inputs of the step only.
  bool isStatic(::mlir::Operation *op) const { return statics.contains(op); }
  /// Whether a later layer reads `value` in the forward pass.
  bool crosses(::mlir::Value value) const;

private:
  void findStatics(::mlir::Block &block);
  int64_t atLeast(::mlir::Operation *op) const;
  bool isReadAfter(::mlir::Value value, int64_t own,
                   ::mlir::Operation *but = nullptr) const;
  void sinkBetweenLayers(::mlir::Block &block);

  ::llvm::DenseMap<::mlir::Operation *, int64_t> layer;
  ::llvm::DenseSet<::mlir::Operation *> statics, weights;
  int64_t numLayers = 0;
};

} // namespace meshwork::memory
