// Passes that say which rank holds which part of each value.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/options/Options.h"

namespace meshwork::sharding {
#define GEN_PASS_DECL
#include "passes/sharding/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/sharding/Passes.h.inc"
} // namespace meshwork::sharding
