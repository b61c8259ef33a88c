// What instructions take on a machine, by lib/Cost, before there is a plan.
#pragma once

#include "dialects/schedule/Schedule.h"
#include "lib/Cost/Times.h"

namespace meshwork::schedule {

/// Of the ops that `program` has now; ops that come later take no time.
class Costs {
public:
  /// `tables` are those of `program`.
  Costs(const cost::Times &times, ProgramOp program,
        const plan::Program &tables);

  const cost::Machine &machine() const { return times.machine(); }
  /// Of one instruction; a repeat is all its turns.
  double seconds(::mlir::Operation *instruction) const;
  /// Whether moving the data takes cores that compute.
  bool takesCores(::mlir::Operation *op) const { return onCores.contains(op); }

private:
  const cost::Times &times;
  ::llvm::DenseMap<::mlir::Operation *, double> ofRun;
  ::llvm::DenseSet<::mlir::Operation *> onCores;
};

} // namespace meshwork::schedule
