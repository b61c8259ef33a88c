// The layers of a function that stand for others (-pipeline-fold-layers), found
// equal to those behind them.
#pragma once

#include <set>
#include <tuple>

#include "passes/analysis/FoldedLayers.h"
#include "passes/pipeline/EqualRanks.h"
#include "passes/pipeline/LayersOfStep.h"
#include "passes/pipeline/Sums.h"
#include "llvm/Support/StringSaver.h"

namespace meshwork::pipeline {

/// By how much numbers of layers grow: of those that stand for others, of the
/// period before them and of the one behind those left out. 0: they stay.
struct Distances {
  int64_t own = 0, before = 0, behind = 0;
};

/// What becomes of names and numbers of layers.
class LayerNames {
public:
  LayerNames(const LayerOfParameter &parameters,
             const analysis::FoldedLayers &folded, const Distances &distances);
  Renamer &operator*() { return renamer; }
  Renamer *operator->() { return &renamer; }

private:
  void add(::mlir::StringAttr name, int64_t layer, int64_t distance);

  ::llvm::BumpPtrAllocator memory;
  ::llvm::StringSaver saver;
  Renaming names;
  Renamer renamer;
};

/// Ops of layers that stand for others, which follow each other in a block, and
/// the same ops of the layers behind.
struct Section {
  ::llvm::SmallVector<::mlir::Operation *> ops, behind;
  bool rises = false; // whether layers follow each other in their order
};

/// One operand of an op that stands for others: what it is in a copy.
struct Source {
  int64_t copy = 0;     // of the copy that is so many further
  size_t value = 0;     // in EqualLayers::values
  bool isFixed = false; // the same for all copies
};

/// All that copies of one function's layers need to know.
class EqualLayers {
public:
  EqualLayers(::mlir::func::FuncOp function,
              const analysis::FoldedLayers &folded,
              const LayerOfParameter &parameters)
      : block(function.getBody().front()), folded(folded),
        parameters(parameters), layers(function, parameters) {}

  /// Fails, with an error, where they are not equal, or where something reads
  /// them that copies would not know of.
  ::mlir::LogicalResult find();

  ::llvm::SmallVector<Section> sections;
  /// Results in the order of sections: `values[i]` of one stands where
  /// `valuesBehind[i]` stands behind.
  ::llvm::SmallVector<::mlir::Value> values, valuesBehind;
  ::llvm::DenseMap<::mlir::Value, size_t> places, placesBehind;
  ::llvm::DenseMap<::mlir::Operation *, ::llvm::SmallVector<Source>> sources;
  /// Ops whose attributes name layers.
  ::llvm::DenseSet<::mlir::Operation *> named;
  /// Operands of layers there that read another layer when there are more.
  ::llvm::SmallVector<::mlir::OpOperand *> readBefore, readBehind;
  /// Which have terms of all layers.
  ::llvm::SmallVector<Sum> sums;

private:
  enum class Kind { other, standing, behind };
  Kind kindOf(::mlir::Operation *op) const;
  ::mlir::LogicalResult findSections();
  void number(const Section &section);
  ::mlir::LogicalResult compare(const Section &section);
  bool areEqual(::mlir::Operation *op, ::mlir::Operation *other,
                Renamer &renamer);
  bool findSources(::mlir::Operation *op, ::mlir::Operation *other);
  std::optional<Source> sourceOf(::mlir::Value value,
                                 ::mlir::Value other) const;
  bool isIn(::mlir::Operation *op, int64_t firstLayer) const;
  ::mlir::LogicalResult findReaders();

  ::mlir::Block &block;
  const analysis::FoldedLayers &folded;
  const LayerOfParameter &parameters;
  LayersOfStep layers;
};

} // namespace meshwork::pipeline
