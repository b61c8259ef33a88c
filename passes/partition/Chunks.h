// How the rows of an activation are cut into chunks that travel by themselves.
//
//   Chunks chunks{dim, /*local=*/6, /*ranks=*/2, /*count=*/3};
//   chunks.cut(b, whole, 1);  // rows 2, 3 (of the first rank) and 8, 9
//   chunks.join(b, parts, whole.getType());
#pragma once

#include "dialects/transformer/Transformer.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace meshwork::partition {

/// Along `dim` a rank has `local` rows, and `ranks` of them lie side by side in
/// what they gather. A chunk has the same rows of each rank, so that a gather
/// of one rank's chunk gives the chunk of all. With one rank, or along a dim
/// that is not gathered, chunks are simply neighbours.
struct Chunks {
  ::mlir::StringAttr dim;
  int64_t local = 0, ranks = 1, count = 1;

  /// Of each rank's rows; the sizes differ by one at most.
  int64_t offset(int64_t chunk) const { return local * chunk / count; }
  int64_t size(int64_t chunk) const {
    return offset(chunk + 1) - offset(chunk);
  }
  /// Of all ranks.
  int64_t rows(int64_t chunk) const { return ranks * size(chunk); }
  /// The same of one rank's rows alone.
  Chunks ofOne() const { return {dim, local, 1, count}; }
  bool operator==(const Chunks &) const = default;

  /// `type` with the rows of a chunk. With several ranks `split` names these by
  /// a dim of their own in front, as the chunk lies in the whole.
  ::mlir::RankedTensorType typeOf(::mlir::RankedTensorType type, int64_t chunk,
                                  bool split = true) const;
  /// A view.
  ::mlir::Value cut(::mlir::ImplicitLocOpBuilder &b, ::mlir::Value whole,
                    int64_t chunk) const;
  /// Views of the whole, which are made in their places.
  ::mlir::Value join(::mlir::ImplicitLocOpBuilder &b,
                     ::mlir::ArrayRef<::mlir::Value> parts,
                     ::mlir::RankedTensorType whole) const;
  /// A chunk with its ranks as a dim of their own, and as gathers bring it.
  ::mlir::Value split(::mlir::ImplicitLocOpBuilder &b, ::mlir::Value part,
                      int64_t chunk) const;
  ::mlir::Value merge(::mlir::ImplicitLocOpBuilder &b, ::mlir::Value part,
                      ::mlir::RankedTensorType whole, int64_t chunk) const;
  /// The einsum of a product that has `dim`, for a chunk.
  ::mlir::StringAttr equationOf(transformer::ContractOp product) const;
};

} // namespace meshwork::partition
