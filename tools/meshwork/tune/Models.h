// The texts of Facts, parsed once: processes that begin later have them.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/meshwork/tune/Facts.h"

#include <vector>

namespace meshwork::tune {

class Models {
public:
  /// Starts no thread.
  explicit Models(const Facts &facts);

  mlir::ModuleOp whole() const { return *all; }
  /// Null where the facts have no text.
  mlir::ModuleOp shallow() const { return *few; }
  /// Of a kind of layers, likewise.
  mlir::ModuleOp deeper(size_t kind) const { return *more[kind]; }

private:
  using Parsed = mlir::OwningOpRef<mlir::ModuleOp>;
  Parsed parse(const std::string &text);

  mlir::MLIRContext context;
  Parsed all, few;
  std::vector<Parsed> more;
};

} // namespace meshwork::tune
