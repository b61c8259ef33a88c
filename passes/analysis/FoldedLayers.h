// Layers that are left out of a module, because others stand for them
// (-pipeline-fold-layers).
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::analysis {

inline constexpr ::llvm::StringLiteral foldedLayersName =
    "schedule.folded_layers";

/// `copies` times the `period` layers before layer `first` follow them, and
/// are not there.
struct FoldedLayers {
  int64_t first = 0, period = 1, copies = 0;

  /// None are left out where the module does not say so.
  static FoldedLayers of(::mlir::ModuleOp module) {
    auto told =
        module->getAttrOfType<::mlir::DenseI64ArrayAttr>(foldedLayersName);
    if (!told || told.size() != 3)
      return {};
    return {told[0], told[1], told[2]};
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
