// A forward pass that runs again with all rounds of its exchanges.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "llvm/ADT/SetVector.h"

namespace meshwork::transform {

/// A forward pass: the ops of a block from `begin`, up to `end`. Its narrow
/// form is the pass with one round of each exchange. The wide form runs what
/// depends on rounds again, with all of them.
class WideForm {
public:
  WideForm(::mlir::Operation *begin, ::mlir::Operation *end)
      : block(*begin->getBlock()), begin(begin), end(end) {}

  /// Whether there is one that saves a number: for two exchanges or more, where
  /// all ops that depend on rounds can run twice or wait.
  bool find();

  /// Puts the wide form at the end of the pass, in a repeat of one turn. What
  /// is behind it reads what it makes; what is accumulated or sent stands there
  /// too. Its `expert_rounds` are left to expand, those of the narrow form stay
  /// until `dropRounds`.
  transformer::RepeatOp build();

  /// Those of the narrow form.
  ::llvm::ArrayRef<transformer::ExpertRoundsOp> getRounds() const {
    return rounds;
  }
  /// The narrow form has the first one alone.
  void dropRounds();

private:
  bool take(::mlir::Operation &op);
  void takeSumsOf(transformer::ExpertRoundsOp op);
  bool isInside(::mlir::Operation *op) const {
    return again.contains(block.findAncestorOpInBlock(*op));
  }
  bool isUsedBehind(::mlir::Value value) const;
  bool isOfWeights(::mlir::Value value) const;
  bool isStored(::mlir::Value value) const;

  void findCarried();
  transformer::RepeatOp createRepeat();
  void cloneInto(transformer::RepeatOp repeat);
  void cloneWeights(::mlir::OpBuilder &builder, ::mlir::Value value,
                    ::mlir::IRMapping &wide);
  void makeBehind(transformer::RepeatOp repeat);

  ::mlir::Block &block;
  ::mlir::Operation *begin, *end;
  ::llvm::SmallVector<transformer::ExpertRoundsOp> rounds;
  ::llvm::SetVector<::mlir::Operation *> again;     // in their order
  ::llvm::DenseSet<::mlir::Operation *> sums;       // of first rounds
  ::llvm::SmallVector<::mlir::Operation *> effects; // that wait for the word
  ::llvm::DenseSet<::mlir::Value> changed;
  ::llvm::SmallVector<::mlir::Value> carried;     // what the pass leaves
  ::llvm::SmallVector<::mlir::Operation *> views; // and is made of that again
};

} // namespace meshwork::transform
