// What dims of a step are for, by what its ops say of the loops along them
// (`Factor::role`). A dim's name tells which dims are the same one, and nothing
// else.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace meshwork::sharding {

class DimRoles {
public:
  /// Of the dims of a module's step: the ops of @microbatch tell, and its first
  /// argument, the tokens of all samples.
  explicit DimRoles(::mlir::ModuleOp module);

  bool has(::llvm::StringRef dim, transformer::Factor::Role role) const;
  /// Whether some dim is for that.
  bool any(transformer::Factor::Role role) const;
  /// Whether ranks have equally many whole entries of the dim: samples, heads,
  /// experts. Blocks of others may be short.
  bool isCounted(::llvm::StringRef dim) const;

private:
  void add(::llvm::StringRef dim, transformer::Factor::Role role) {
    roles[dim] |= 1u << role;
  }

  ::llvm::StringMap<unsigned> roles; // bits, by the role's number
};

} // namespace meshwork::sharding
