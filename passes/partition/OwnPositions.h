// Which part of the whole a rank has, for ops that count positions there: rows
// of split tables, positions of tokens, queries of attention, draws.
#pragma once

#include "passes/partition/Mask.h"

namespace meshwork::partition {

class OwnPositions {
public:
  /// What attention in a ring is over.
  struct Sequence {
    sharding::Axes axes; // of the ranks that share it
    int64_t size;
  };

  /// `mesh` and `masks` outlive it.
  OwnPositions(mesh::MeshAttr attr, const sharding::Mesh &mesh, Masks &masks)
      : attr(attr), mesh(mesh), masks(masks), builder(attr.getContext()) {}

  /// Gives `op` the operands that tell it. All types are still of the whole.
  void count(::mlir::Operation *op);
  /// Of attention in a ring that was counted; null of all else.
  const Sequence *ringOf(::mlir::Operation *op) const {
    auto found = rings.find(op);
    return found == rings.end() ? nullptr : &found->second;
  }

private:
  ::mlir::Value offsetOf(::mlir::Operation *at, ::mlir::Value value,
                         int64_t dim);
  template <typename Op> void setFirstRow(Op op, ::mlir::Value table);
  void setPositions(transformer::RotaryTableOp op);
  void splitHead(transformer::HeadLossGradOp op);
  void countTokens(transformer::HeadLossGradOp op);
  bool isSplitOverAll(::mlir::Value value) const;
  template <typename Op> void countPairs(Op op);
  void countDraws(transformer::MapOp map);
  ::mlir::Value offsetOfElement(transformer::MapOp map, ::mlir::Value space,
                                int64_t dim);

  mesh::MeshAttr attr;
  const sharding::Mesh &mesh;
  Masks &masks;
  ::mlir::OpBuilder builder;
  ::llvm::DenseMap<::mlir::Operation *, Sequence> rings;
};

} // namespace meshwork::partition
