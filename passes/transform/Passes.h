// Passes that prepare a model. Options are in Passes.td.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/options/Options.h"

namespace meshwork::transform {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/transform/Passes.h.inc"
} // namespace meshwork::transform
