// Errors of a model that was imported: its text is nobody's file, so they name
// the layer and the tensors instead of a line of it.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"

namespace meshwork::driver {

/// While it lives, prints what is said of lines of the text that `module` was
/// parsed from as `name`, in this form:
///
///   config.json: error: layer 3, "model.layers.3.mlp.up_proj.weight": ...
class ImportedPlaces {
public:
  ImportedPlaces(mlir::ModuleOp module, llvm::StringRef name);

private:
  void note(mlir::Operation *op);
  mlir::LogicalResult handle(mlir::Diagnostic &diagnostic) const;
  std::string tell(mlir::Diagnostic &diagnostic) const;
  /// Its line in the text; 0 where it is of something else.
  unsigned lineOf(mlir::Location at) const;

  mlir::StringAttr name;
  llvm::DenseMap<unsigned, std::string> places; // of lines
  llvm::DenseMap<mlir::Operation *, int64_t> layers;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace meshwork::driver
