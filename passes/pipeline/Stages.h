// Which stage of a pipeline runs which op of @microbatch.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace meshwork::pipeline {

/// The layers of a step's ops, said by the ops or by what they read.
class LayersOfOps {
public:
  explicit LayersOfOps(::mlir::func::FuncOp microbatch);

  int64_t count() const { return numLayers; }
  /// None for what depends on parameters and inputs alone, or on nothing at
  /// all, like a part of a rotary table: it is made wherever it is used.
  std::optional<int64_t> of(::mlir::Operation *op) const;
  /// Whether it runs after the forward pass: from the head on.
  bool isInBackward(::mlir::Operation *op) const {
    return backward.contains(op);
  }
  /// The first layer that no op belongs to, if there is one.
  std::optional<int64_t> firstEmpty() const;
  /// Model flops of each layer, forward and backward, with those of the head in
  /// the last one.
  ::llvm::SmallVector<double> flops() const;

private:
  bool isTable(::mlir::Operation *op) const;
  std::optional<int64_t> follow(::mlir::Operation *op) const;

  ::mlir::Block &block;
  int64_t numLayers = 0;
  ::llvm::DenseMap<::mlir::Operation *, int64_t> layers;
  ::llvm::DenseSet<::mlir::Operation *> backward, tables;
};

/// How many layers each of `stages` has, at least one, so that the most
/// expensive stage costs as little as can be; stages at most as many as layers.
::llvm::SmallVector<int64_t> balance(::llvm::ArrayRef<double> costs,
                                     int64_t stages);

/// The same where the rank that `rankOf` names for each stage holds at most
/// `mostOfRank` layers in all its stages. Nothing where no layout keeps that.
/// Later ranks fill up first, so with layers of equal cost, but for one at the
/// end, no other layout has a cheaper slowest stage.
std::optional<::llvm::SmallVector<int64_t>>
balanceWithin(::llvm::ArrayRef<double> costs, ::llvm::ArrayRef<int32_t> rankOf,
              ::llvm::ArrayRef<int64_t> mostOfRank);

/// The cost of the most expensive stage of a layout.
double slowestStage(::llvm::ArrayRef<double> costs,
                    ::llvm::ArrayRef<int64_t> layers);

} // namespace meshwork::pipeline
