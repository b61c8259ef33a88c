// A model as the compiler holds it: read, checked, parsed.
#pragma once

#include <optional>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/meshwork/driver/ImportedPlaces.h"

#include "llvm/Support/SourceMgr.h"

namespace meshwork::driver {

/// Whether a path names a config.json of Hugging Face, and no `.mlir`.
bool isConfig(llvm::StringRef path);

/// Reading is for `guarded`, between beginReading and endReading; `name` is for
/// messages. Each returns an exit code.
class Model {
public:
  Model();
  /// A config.json or text, whichever the path names.
  int read(const std::string &text, const std::string &path);
  /// `isKnown`: it was imported before, so only errors are told.
  int importConfig(const std::string &json, const std::string &name,
                   bool isKnown = false);
  /// Parses text in the transformer dialect.
  int readText(std::string text, const std::string &name);

  mlir::ModuleOp module() { return *parsed; }
  /// What phases have made of it elsewhere, in its place.
  void replace(mlir::OwningOpRef<mlir::ModuleOp> module) {
    parsed = std::move(module);
  }
  /// The model as text in the transformer dialect.
  const std::string &text() const { return source; }
  /// Rows of the table that tokens choose from, the fewer of it and the head's.
  uint32_t vocabulary() const { return numTokens; }

private:
  int parse(std::string text, const std::string &name);
  void findVocabulary();

  mlir::MLIRContext context;
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> parsed;
  std::optional<ImportedPlaces> places; // of a config.json
  std::string source;
  uint32_t numTokens = 0;
};

} // namespace meshwork::driver
