// How overlap is decided and written.
#pragma once

#include "lib/Cost/Times.h"
#include "passes/schedule/Order.h"
#include "llvm/ADT/StringMap.h"

namespace meshwork::schedule {

/// What instructions take on a machine, by lib/Cost.
class Costs {
public:
  Costs(const cost::Machine &machine, mesh::MeshAttr mesh);

  const cost::Machine &machine() const { return times.machine(); }
  double seconds(::mlir::Operation *instruction) const;
  /// Whether moving the data takes cores that compute.
  bool takesCores(CollectiveOp op) const;

private:
  ::llvm::SmallVector<uint32_t> axesOf(CollectiveOp op) const;

  cost::Times times;
  ::llvm::StringMap<uint32_t> axes; // places in the mesh
};

/// Waits for the collectives among `instructions`, those of `block` in order,
/// that have a channel.
void insertWaits(::mlir::Block &block,
                 ::llvm::ArrayRef<::mlir::Operation *> instructions);

} // namespace meshwork::schedule
