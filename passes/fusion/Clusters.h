// Which computations share a kernel. Fuse.cpp builds what is decided here.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "passes/analysis/FoldedLayers.h"
#include "llvm/ADT/SetVector.h"

namespace meshwork::fusion {

/// How a reduction lies in its input's dims.
enum class ReductionShape {
  row,      // trailing dims go: a value per row, usable within the kernel
  column,   // leading dims go, or all: partial sums per chunk of rows
  vertical, // adds up the chunks of an earlier kernel
  other     // no kernel form
};
ReductionShape shapeOf(transformer::ReduceOp op);

/// A computation that ends in one stored value, back to stored operands.
struct Cone {
  ::mlir::Value root;
  ::llvm::SetVector<::mlir::Operation *> members;
  ::llvm::SetVector<::mlir::Value> leaves;
  ::mlir::RankedTensorType space; // iteration space
  std::optional<transformer::DimsAttr>
      columns; // what reductions and rolls demand
};

/// Cones that become one kernel.
struct Cluster {
  ::llvm::SmallVector<::mlir::Value> roots;
  ::llvm::SetVector<::mlir::Operation *> members;
  ::llvm::SetVector<::mlir::Value> leaves;
  ::mlir::RankedTensorType space;
  std::optional<transformer::DimsAttr> columns;
  int64_t place; // after the op of this number, which makes the last operand
};

/// Whether a result of the walk over `space` has its dims in another order.
bool isTransposed(::mlir::Value root, ::mlir::RankedTensorType space);

/// Decides, for one block, which values are stored and which kernels compute
/// them; clusters come in an order in which they can run.
class Clustering {
public:
  /// `maxLeaves` operands of a kernel, at most. With `tileMaxima` a kernel that
  /// transposes may find maxima of everything. Of `folded` layers operands
  /// count as often as they would be there: where there would be too many,
  /// kernels of all layers are others than those of few, and `run` fails.
  Clustering(::mlir::Block &block, int64_t maxLeaves, bool tileMaxima,
             const analysis::FoldedLayers &folded)
      : block(block), maxLeaves(maxLeaves), tileMaxima(tileMaxima),
        folded(folded) {}
  ::mlir::LogicalResult run();

  ::llvm::SmallVector<Cluster> clusters;
  /// Ops that are not fusible, numbered in program order.
  ::llvm::SmallVector<::mlir::Operation *> anchors;

private:
  void findStored();
  void storeShared(::llvm::ArrayRef<::mlir::Operation *> order);
  bool worthStoring(
      ::mlir::OpResult value,
      const ::llvm::DenseMap<::mlir::Operation *, ::llvm::SmallVector<int64_t>>
          &kernels);
  ::mlir::LogicalResult placeAll(::llvm::ArrayRef<::mlir::Operation *> order);
  ::mlir::FailureOr<Cone> trace(::mlir::Value root);
  ::mlir::FailureOr<const Cone *> coneOf(::mlir::Value root);
  bool isWhole(const Cone &cone) const;
  bool areTooMany(const ::llvm::SetVector<::mlir::Value> &leaves);
  ::mlir::Value operandToStore(::mlir::Value root);
  bool addMember(Cone &cone, ::mlir::Operation *op);
  void place(const Cone &cone);
  bool fitTiles(const Cluster &cluster, const Cone &cone) const;
  bool join(Cluster &cluster, int64_t index, const Cone &cone, int64_t place);

  ::mlir::Block &block;
  size_t maxLeaves;
  bool tileMaxima;
  const analysis::FoldedLayers &folded;
  bool isTooDeep = false; // kernels of all layers would read too much
  ::llvm::DenseMap<::mlir::Operation *, int64_t> number; // of anchors
  ::llvm::DenseMap<::mlir::Operation *, int64_t>
      notBefore; // op that must not run earlier -> the anchor before it
  ::llvm::SetVector<::mlir::Value> stored;
  ::llvm::DenseMap<::mlir::Value, std::unique_ptr<Cone>> cones; // by root
  ::llvm::DenseMap<::mlir::Value, int64_t> clusterOf; // stored value -> cluster
};

} // namespace meshwork::fusion
