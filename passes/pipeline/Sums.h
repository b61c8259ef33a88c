// Sums of numbers in @update, which name a term for each parameter.
#pragma once

#include "dialects/transformer/Transformer.h"

namespace meshwork::pipeline {

/// Whether it is neither read from a state nor set by the launcher.
bool isComputed(::mlir::Value value);

/// A sum of numbers, some of which other ranks have.
bool isSum(::mlir::Operation *op);

/// Whether a map adds up its operands, each once, and does nothing else.
bool addsUp(transformer::MapOp map);

/// The terms of a sum of sums, in order, and its maps, the root first.
struct Sum {
  explicit Sum(transformer::MapOp map) { add(map); }
  /// Puts a sum of `terms` in its place.
  void replace(::llvm::ArrayRef<::mlir::Value> by);

  ::llvm::SmallVector<transformer::MapOp> maps;
  ::llvm::SmallVector<::mlir::Value> terms;

private:
  void add(transformer::MapOp map);
};

} // namespace meshwork::pipeline
