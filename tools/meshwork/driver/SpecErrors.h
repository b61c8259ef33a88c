// What passes find wrong with the spec, told at the spec's lines.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/codegen/plan/ProvenanceTables.h"

namespace meshwork::driver {

/// While it lives, prints what passes mark with a key of the spec
/// (passes/analysis/SpecKey.h) at the place of that key.
class SpecErrors {
public:
  SpecErrors(mlir::MLIRContext *context, const spec::Spec &spec,
             const codegen::Origins &origins);
  /// Whether there was an error of the spec.
  bool any() const { return found; }

private:
  mlir::LogicalResult handle(mlir::Diagnostic &diagnostic);
  std::string placeOf(llvm::StringRef key) const;

  const spec::Spec &spec;
  const codegen::Origins &origins;
  bool found = false;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace meshwork::driver
