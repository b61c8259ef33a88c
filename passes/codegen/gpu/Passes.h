// Passes that turn clusters into kernels of a GPU. Options are in Passes.td.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace meshwork::codegen {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/codegen/gpu/Passes.h.inc"
} // namespace meshwork::codegen
