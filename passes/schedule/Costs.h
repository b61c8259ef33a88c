// What instructions take on a machine, by lib/Cost.
#pragma once

#include "dialects/schedule/Schedule.h"
#include "lib/Cost/Times.h"
#include "llvm/ADT/StringMap.h"

namespace meshwork::schedule {

class Costs {
public:
  Costs(const cost::Machine &machine, mesh::MeshAttr mesh);

  const cost::Machine &machine() const { return times.machine(); }
  /// Of one instruction; a repeat is all its turns.
  double seconds(::mlir::Operation *instruction) const;
  /// Of one run of each list of `program`, the mean of a step; 0 where it does
  /// not run. What a channel moves is hidden until it is waited for.
  std::vector<double> listSeconds(ProgramOp program) const;
  /// Whether moving the data takes cores that compute.
  bool takesCores(CollectiveOp op) const;

private:
  ::llvm::SmallVector<uint32_t> axesOf(CollectiveOp op) const;
  double runSeconds(ListOp list, bool isLast) const;

  cost::Times times;
  ::llvm::StringMap<uint32_t> axes; // places in the mesh
};

} // namespace meshwork::schedule
