// In which list of a pipeline's stage an op stands. Passes behind the cut move
// ops within lists: a rank works on other microbatches between two of them.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "llvm/ADT/DenseMap.h"

namespace meshwork::transformer {

class StageLists {
public:
  explicit StageLists(::mlir::Block &block);

  /// Null in front of all lists, and where there is no pipeline.
  StageListOp of(::mlir::Operation *op) const { return lists.lookup(op); }
  /// `op` has been put beside `other`.
  void put(::mlir::Operation *op, ::mlir::Operation *other) {
    lists[op] = of(other);
  }
  /// Whether what is made beside `maker` is there when the list of `user` runs.
  /// Lists of a microbatch run as they stand, but gradients of weights may come
  /// later than lists behind them.
  bool isThere(::mlir::Operation *maker, ::mlir::Operation *user) const;

private:
  ::llvm::DenseMap<::mlir::Operation *, StageListOp> lists;
};

} // namespace meshwork::transformer
