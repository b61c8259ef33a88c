// What the sharding passes note for `meshwork explain`: names of values, and
// the words for causes.
#pragma once

#include "dialects/mesh/Provenance.h"
#include "passes/sharding/FactorTable.h"

namespace meshwork::sharding {

/// The notes on a value, made and named on first use. A value is called after
/// the parameter that its op reads, "model.layers.0.mlp.up_proj", or else after
/// the operand computed last and the op, ".../map"; equal names are numbered.
mesh::ValueStory &notesOn(::mlir::Value value);
size_t placeOf(::mlir::Value value);

/// Names all tensors of `function` in order.
void nameAll(::mlir::Operation *function);
/// Notes that a key of the spec splits a dim over `axes`.
void noteAnnotation(::mlir::Value value, size_t dim,
                    ::llvm::ArrayRef<::mlir::StringAttr> axes,
                    const ::llvm::Twine &key);

/// The layer that the parameter `name` of the step around `op` declares, or -1.
int64_t layerOf(::mlir::Operation *op, ::llvm::StringRef name);
/// A value's name with "*" for the number of its layer: what layers share.
std::string sharedName(const mesh::ValueStory &value);

/// One axis that a factor of an op has, and the annotation that it came from.
struct FactorAxis {
  std::string axis, factor, annotation;
  /// "heads, which tp splits (shard.heads)"
  std::string text() const;
};
/// `annotation` is that of the first tensor that has the axis along the factor.
FactorAxis factorAxis(const mesh::Provenance &notes, const Mesh &mesh,
                      const FactorTable &table, size_t factor, AxisId axis,
                      ::llvm::ArrayRef<Proposal> proposals);

} // namespace meshwork::sharding
