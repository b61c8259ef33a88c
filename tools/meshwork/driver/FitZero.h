// `zero.gathered = "auto"` and `zero.reduce = "auto"`.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace meshwork::driver {

/// All that the keys with "auto" leave open, from what keeps least to what
/// keeps most.
std::vector<spec::Zero> waysOfZero(const spec::Spec &spec);

struct ZeroChoice {
  spec::Zero zero;
  uint64_t bytes = 0; // of the rank that needs most
  double seconds = 0; // of a step
};

/// The way with which a step of `module`, as phase `step` leaves it, should
/// take least time, of those that fit the memory of a rank. Of equal ones the
/// one that needs less. Where none fits: the one that needs least. Compiles the
/// rest of the phases on copies, with all that is "auto" there chosen too;
/// fails where one has a fault. The spec has a limit of memory.
mlir::FailureOr<ZeroChoice> fitZero(mlir::ModuleOp module,
                                    const spec::Spec &spec);

} // namespace meshwork::driver
