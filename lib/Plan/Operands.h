// Which views an instruction reads and writes, in the order that Plan.fbs says.
#pragma once

#include "absl/functional/function_ref.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::plan {

struct Operand {
  uint32_t view;
  const char *role; // "lhs", "part.documents": the field's name in Plan.fbs
  bool read;        // the bytes from before matter
  bool written;
  bool addsUp = false; // Accumulate::after_first
};

/// Calls `visit` once per view field that is present. The instruction must
/// have an operation (`checkPlan` makes sure).
void forEachOperand(const Instruction &instruction,
                    absl::FunctionRef<void(const Operand &)> visit);

} // namespace meshwork::plan
