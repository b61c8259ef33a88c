// Errors about the spec, not the model. A pass that finds what the spec alone
// cannot know names the key. Whoever has read the spec can then tell the user
// its line.
//
//   emitError(analysis::ofSpec("batch.sequence", op.getLoc())) << ...
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace meshwork::analysis {

inline constexpr llvm::StringLiteral specPrefix = "spec ";

/// `at`, marked with a key of the spec: "shard.heads", or "shard.tensor[2]" for
/// one of several tables.
inline mlir::Location ofSpec(const llvm::Twine &key, mlir::Location at) {
  return mlir::NameLoc::get(
      mlir::StringAttr::get(at.getContext(), specPrefix + key), at);
}

/// The key that `at` is marked with; empty where it has none.
inline llvm::StringRef specKeyOf(mlir::Location at) {
  auto named = llvm::dyn_cast<mlir::NameLoc>(at);
  llvm::StringRef name = named ? named.getName().getValue() : "";
  return name.consume_front(specPrefix) ? name : "";
}

} // namespace meshwork::analysis
