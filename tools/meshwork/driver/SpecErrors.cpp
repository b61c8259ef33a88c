#include "tools/meshwork/driver/SpecErrors.h"

#include "passes/analysis/SpecKey.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace meshwork::driver {

SpecErrors::SpecErrors(MLIRContext *context, const spec::Spec &spec,
                       const codegen::Origins &origins)
    : spec(spec), origins(origins),
      handler(context, [this](mlir::Diagnostic &it) { return handle(it); }) {}

LogicalResult SpecErrors::handle(mlir::Diagnostic &diagnostic) {
  StringRef key = analysis::specKeyOf(diagnostic.getLocation());
  // The pass manager's word that a reproducer was written helps nobody here.
  if (key.empty())
    return success(
        found &&
        StringRef(diagnostic.str()).starts_with("Failures have been detected"));
  bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
  found |= isError;
  llvm::errs() << placeOf(key) << (isError ? ": error: " : ": warning: ")
               << key.split('[').first << ": " << diagnostic.str() << "\n";
  return success();
}

/// A rule that the spec does not spell out follows from the mesh's axes.
std::string SpecErrors::placeOf(StringRef key) const {
  auto [name, number] = key.split('[');
  size_t index = 0;
  if (!number.consumeInteger(10, index)) {
    const auto &groups = spec.optimizer.groups;
    if (name == "optimizer.groups" && index < groups.size())
      return groups[index].place;
    if (name == "shard.tensor" && index < spec.pins.size())
      return spec.pins[index].place;
  }
  auto given = origins.find(name.str());
  if (given == origins.end() || given->second == "default")
    given =
        origins.find(name == "shard.kv_heads" ? "shard.heads" : "mesh.axes");
  if (given->second == "default")
    given = origins.find("mesh.axes");
  return given->second;
}

} // namespace meshwork::driver
