// What products may do for a cluster, and what that saves. FoldEpilogues.cpp
// does what is decided here.
#pragma once

#include "passes/fusion/Remainder.h"

namespace meshwork::fusion {

/// One result of a cluster that a product can make along the way.
struct Fold {
  unsigned result; // of the cluster
  transformer::Epilogue epilogue;
  transformer::ContractOp product;
  ::mlir::Value input; // outside the cluster: of gelu_grad what GELU was
                       // applied to, of sums what is summed
};

/// What a cluster still has to do beside some folds. A folded result that
/// others need is an operand.
Remainder remainderOf(transformer::FusedOp cluster,
                      ::llvm::ArrayRef<Fold> folds);

/// The folds of `cluster` that together save the most memory traffic; none
/// where none save any. Where it `isMeasured`, what a GPU took for an epilogue
/// counts as traffic.
::llvm::SmallVector<Fold> chooseFolds(transformer::FusedOp cluster,
                                      bool isMeasured);

/// What must stand behind `product` when `sums` come from it: users of theirs,
/// and their users, that stand before it. None where one of them cannot move.
std::optional<::llvm::SmallVector<::mlir::Operation *>>
usersToMove(::mlir::Value sums, transformer::ContractOp product);

} // namespace meshwork::fusion
