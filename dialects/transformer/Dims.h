// Names of dims that mean something wherever they stand, as `DimsAttr` says.
// What any other dim is for is told by the ops that read it (`Factor::role`),
// whatever it is called.
#pragma once

#include "dialects/transformer/Transformer.h"

namespace meshwork::transformer {
namespace dims {

/// Samples: of a model's tokens and targets the first dim. Draws count them.
inline constexpr ::llvm::StringLiteral samples = "batch";
/// Tokens of a sequence: of a model's tokens and targets the second dim.
inline constexpr ::llvm::StringLiteral tokens = "sequence";
/// Parts of a sum over rows, in front of its own dims. Only fusion makes it.
inline constexpr ::llvm::StringLiteral chunks = "chunk";

} // namespace dims

/// <chunk>, what adds the parts of such sums up reduces over.
inline DimsAttr chunkDims(::mlir::MLIRContext *context) {
  return DimsAttr::get(context, {dims::chunks});
}
/// Whether the tensor is such parts.
inline bool isOfChunks(::mlir::Type type) {
  ::llvm::ArrayRef<::mlir::StringAttr> names = dimsOf(type).getNames();
  return !names.empty() && names.front() == dims::chunks;
}

} // namespace meshwork::transformer
