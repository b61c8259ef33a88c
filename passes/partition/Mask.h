// Keeps padding out of what ranks compute: knows for each value what lies
// behind the end of its part, and masks it where an op would take it in.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "lib/Sharding/Reshard.h"
#include "passes/sharding/Shardings.h"

namespace meshwork::partition {

class Masks {
public:
  Masks(mesh::MeshAttr attr, const sharding::Mesh &mesh)
      : attr(attr), mesh(mesh) {}

  /// Whether some rank's part of a dim ends before its storage does.
  bool isUneven(int64_t size, const sharding::Axes &axes) const;
  /// Whether, besides, padding stands at indices that another rank has.
  bool overlaps(int64_t size, const sharding::Axes &axes) const;
  /// How many elements of a dim this rank has, as a scalar tensor.
  ::mlir::Value extent(::mlir::Operation *at, int64_t size,
                       const sharding::Axes &axes) const;
  /// Which elements of the dim these are: a tensor of the dim `name`, -1 in the
  /// padding.
  ::mlir::Value positions(::mlir::Operation *at, int64_t size,
                          const sharding::Axes &axes,
                          ::mlir::StringAttr name) const;

  /// What tells these elements from padding, made before `at`.
  transformer::OwnElements own(::mlir::Operation *at, int64_t size,
                               const sharding::Axes &axes,
                               ::mlir::StringAttr name) const;

  /// Operands of `op`, of local types, with their padding masked where it
  /// would reach a result.
  void guard(::mlir::Operation *op);
  /// Notes what the results of `op`, as on one rank, have as padding.
  /// `sharding` gives theirs; their types are still those of the whole.
  void derive(::mlir::Operation *op,
              ::llvm::ArrayRef<sharding::Sharding> shardings);
  /// Notes the result of a collective that is `step` of a reshard of `whole`.
  void deriveStep(::mlir::Value input, ::mlir::Value result,
                  const sharding::Step &step, ::mlir::RankedTensorType whole);
  /// `replacement` stands for `value`, whose padding it has.
  void takeOver(::mlir::Value value, ::mlir::Value replacement) {
    Part part = partOf(value);
    parts[replacement] = std::move(part);
  }

private:
  struct Part {
    ::mlir::RankedTensorType whole;
    sharding::Sharding sharding;
    ::llvm::SmallVector<transformer::Padding>
        padding; // of a dim without any: realValue()
  };
  Part partOf(::mlir::Value value) const;
  transformer::Padding paddingOf(::mlir::Value value,
                                 ::mlir::StringAttr dim) const;
  transformer::Padding resultPadding(::mlir::OpResult result, int64_t dim,
                                     const Part &part) const;
  void require(::mlir::OpOperand &operand, ::mlir::StringAttr dim,
               transformer::PaddingNeed::Kind need);
  ::mlir::Value masked(::mlir::Operation *user, ::mlir::Value value,
                       ::mlir::StringAttr dim,
                       transformer::PaddingNeed::Kind need);

  mesh::MeshAttr attr;
  const sharding::Mesh &mesh;
  ::llvm::DenseMap<::mlir::Value, Part> parts;
  std::map<
      std::tuple<const void *, const void *, transformer::PaddingNeed::Kind>,
      ::mlir::Value>
      cache;
};

} // namespace meshwork::partition
