// Options are in Passes.td.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/options/Options.h"

namespace meshwork::partition {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/partition/Passes.h.inc"
} // namespace meshwork::partition
