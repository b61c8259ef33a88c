// A parameter's lists of files in the form that lib/Plan judges.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "lib/Plan/FileForms.h"

namespace meshwork::transformer {

/// `files` holds #transformer.file of a parameter of shape `whole`. What an
/// attribute leaves out is filled in.
plan::FileForm formOf(mlir::ArrayAttr files, llvm::ArrayRef<int64_t> whole);

/// All forms of a parameter, the written one first.
std::vector<plan::FileForm> formsOf(ParameterOp parameter);

/// Labels C6 and C7.
mlir::LogicalResult verifyFiles(ParameterOp parameter);

} // namespace meshwork::transformer
