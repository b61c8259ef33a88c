#include "tools/meshwork/driver/ImportedPlaces.h"

#include "dialects/transformer/Facts.h"
#include "meshwork/Text/Escape.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace meshwork::driver {
using namespace transformer;

ImportedPlaces::ImportedPlaces(ModuleOp module, StringRef file)
    : name(StringAttr::get(module.getContext(), file)),
      handler(module.getContext(),
              [this](mlir::Diagnostic &it) { return handle(it); }) {
  module.walk<WalkOrder::PreOrder>([&](Operation *op) { note(op); });
  layers.clear(); // Ops come and go from here on.
}

unsigned ImportedPlaces::lineOf(Location at) const {
  auto place = at->findInstanceOf<FileLineColLoc>();
  return place && place.getFilename() == name ? place.getLine() : 0;
}

/// An op is of the last layer that something it reads is of, if it reads no
/// parameter that is of none.
void ImportedPlaces::note(Operation *op) {
  std::vector<std::string> names;
  std::optional<int64_t> layer = layerOf(op);
  bool readsOther = false;
  auto read = [&](ParameterOp parameter) {
    names.push_back(quote(parameter.getName().str()));
    readsOther |= !layerOf(parameter);
  };
  if (auto parameter = dyn_cast<ParameterOp>(op))
    read(parameter);
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp()) {
      if (auto known = layers.find(source); known != layers.end())
        layer = std::max(layer, std::optional(known->second));
      if (auto parameter = dyn_cast<ParameterOp>(source))
        read(parameter);
    }
  if (layer && !readsOther) {
    layers[op] = *layer;
    names.insert(names.begin(), "layer " + std::to_string(*layer));
  }
  places[lineOf(op->getLoc())] = llvm::join(names, ", ");
}

std::string ImportedPlaces::tell(mlir::Diagnostic &diagnostic) const {
  auto severity = diagnostic.getSeverity();
  std::string text =
      name.str() + (severity == DiagnosticSeverity::Error     ? ": error: "
                    : severity == DiagnosticSeverity::Warning ? ": warning: "
                    : severity == DiagnosticSeverity::Note    ? ": note: "
                                                              : ": remark: ");
  std::string place = places.lookup(lineOf(diagnostic.getLocation()));
  return text + place + (place.empty() ? "" : ": ") + diagnostic.str() + "\n";
}

LogicalResult ImportedPlaces::handle(mlir::Diagnostic &diagnostic) const {
  if (!lineOf(diagnostic.getLocation()))
    return failure();
  llvm::errs() << tell(diagnostic);
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    llvm::errs() << tell(note);
  return success();
}

} // namespace meshwork::driver
