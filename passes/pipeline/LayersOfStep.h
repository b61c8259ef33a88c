// Which layer each op of a step belongs to, also where no fact says so.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace meshwork::pipeline {

/// The layers of parameters, by name.
using LayerOfParameter = ::llvm::DenseMap<::mlir::StringAttr, int64_t>;
LayerOfParameter layersOfParameters(::mlir::ModuleOp module);

/// Of @loss, @microbatch or @update. An op tells its layer by a fact, or by the
/// name of the state that it reads or writes. Another op belongs to the later
/// of the layers that it reads from. If it reads from more than two, it belongs
/// to all of them. An op that reads nothing belongs to the layer of its
/// readers, if they are of one.
class LayersOfStep {
public:
  LayersOfStep(::mlir::func::FuncOp function,
               const LayerOfParameter &parameters);

  std::optional<int64_t> of(::mlir::Operation *op) const;
  std::optional<int64_t> of(::mlir::Value value) const {
    return of(value.getDefiningOp());
  }

private:
  std::optional<int64_t> told(::mlir::Operation *op,
                              const LayerOfParameter &parameters) const;
  std::optional<int64_t> read(::mlir::Operation *op) const;
  std::optional<int64_t> ofUsers(::mlir::Operation *op) const;

  ::llvm::DenseMap<::mlir::Operation *, int64_t> layers;
};

} // namespace meshwork::pipeline
