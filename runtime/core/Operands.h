// Which views an instruction reads and writes.
#pragma once

#include "absl/functional/function_ref.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::runtime {

struct Operand {
  uint32_t view;
  const char *role; // "lhs", "dst": the field's name in Plan.fbs
  bool read;        // the bytes from before matter
  bool written;
};

/// Calls `visit` once per view field that is present. The instruction must
/// have an operation (`checkPlan` makes sure).
void forEachOperand(const plan::Instruction &instruction,
                    absl::FunctionRef<void(const Operand &)> visit);

} // namespace meshwork::runtime
