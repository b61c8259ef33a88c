// A cluster that keeps only some of its results.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "llvm/ADT/SetVector.h"

namespace meshwork::fusion {

/// What a cluster still has to do for some of its results, and what these need
/// of the body.
struct Remainder {
  ::llvm::SmallVector<unsigned> results;
  ::llvm::SetVector<::mlir::Operation *> members;
  ::llvm::SetVector<::mlir::Value> leaves; // arguments and values `outside`
};
/// `outside`: values of the body that something else computes; they become
/// operands.
Remainder remainderOf(transformer::FusedOp cluster,
                      ::llvm::ArrayRef<unsigned> results,
                      const ::llvm::SmallDenseSet<::mlir::Value> &outside =
                          ::llvm::SmallDenseSet<::mlir::Value>());

/// Puts a cluster that does the rest before `cluster`, and its results in the
/// place of those it keeps; the caller erases `cluster`. `values` has the outer
/// value of each inner one that is an operand now.
void rebuild(transformer::FusedOp cluster, const Remainder &rest,
             const ::llvm::DenseMap<::mlir::Value, ::mlir::Value> &values =
                 ::llvm::DenseMap<::mlir::Value, ::mlir::Value>());

} // namespace meshwork::fusion
