// Which parameter a tensor is a copy of: what an instruction is called after.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

namespace meshwork::analysis {

/// The name of the parameter that `value` is, or is made of: gathered from its
/// parts, cast, or rounded and scaled back. Null where it is made of something
/// else, or of more than one tensor.
mlir::StringAttr copiedParameter(mlir::Value value);

} // namespace meshwork::analysis
