// How two models differ, and how the tensors of a checkpoint are not a model's:
// the first differences as text, "" where there are none.
#pragma once

#include <map>

#include "mlir/IR/BuiltinOps.h"
#include "runtime/checkpoint/Manifest.h"

namespace meshwork::driver {

using Shapes = std::map<std::string, std::vector<int64_t>>; // in files

Shapes shapesOf(mlir::ModuleOp model);
Shapes shapesOf(const runtime::Manifest &manifest);

/// How tensors `found` are not those that are `wanted`, the first of each kind.
std::string shapesDiffer(const Shapes &wanted, const Shapes &found);

/// The first line that differs, in the printer's form. What they were imported
/// from is taken off both.
std::string modelsDiffer(mlir::ModuleOp trained, mlir::ModuleOp imported);

} // namespace meshwork::driver
