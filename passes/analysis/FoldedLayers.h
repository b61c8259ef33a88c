// Layers that are left out of a module, because others stand for them
// (-pipeline-fold-layers).
#pragma once

#include "dialects/transformer/Facts.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::analysis {

inline constexpr ::llvm::StringLiteral foldedLayersName =
    "schedule.folded_layers";

/// `copies` times the `period` layers before layer `first` follow them, and
/// are not there.
struct FoldedLayers {
  int64_t first = 0, period = 1, copies = 0;

  /// Layers that follow each other in one order, like with a window and
  /// without: longer periods have not been seen.
  static constexpr int64_t longestPeriod = 8;

  /// None are left out where the module does not say so.
  static FoldedLayers of(::mlir::ModuleOp module) {
    auto told =
        module->getAttrOfType<::mlir::DenseI64ArrayAttr>(foldedLayersName);
    bool isValid = told && told.size() == 3 && told[1] > 0 &&
                   told[1] <= longestPeriod && told[0] >= told[1] &&
                   told[0] < transformer::mostLayers && told[2] > 0 &&
                   told[2] < transformer::mostLayers;
    return isValid ? FoldedLayers{told[0], told[1], told[2]} : FoldedLayers();
  }
  void note(::mlir::ModuleOp module) const {
    module->setAttr(foldedLayersName,
                    ::mlir::DenseI64ArrayAttr::get(module.getContext(),
                                                   {first, period, copies}));
  }

  /// The first layer behind those that are left out.
  int64_t end() const { return first + period * copies; }
  /// Whether what `layer` has is there for others too.
  bool standsForOthers(std::optional<int64_t> layer) const {
    return copies > 0 && layer && *layer < first && *layer >= first - period;
  }
  /// Whether it is the same, of the layers behind those left out.
  bool isFirstBehind(std::optional<int64_t> layer) const {
    return copies > 0 && layer && *layer >= end() && *layer < end() + period;
  }
  /// How many layers have what `layer` has, itself included.
  int64_t times(std::optional<int64_t> layer) const {
    return standsForOthers(layer) ? 1 + copies : 1;
  }
};

} // namespace meshwork::analysis
