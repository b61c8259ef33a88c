// Buffers in the host's memory, and copies of whole buffers from and to it.
#pragma once

#include "dialects/schedule/Schedule.h"

namespace meshwork::schedule {

/// A buffer at the builder's place.
BufferOp makeBuffer(::mlir::OpBuilder &builder, ::mlir::Location loc,
                    const ::llvm::Twine &name, BufferKind kind, int64_t bytes,
                    bool onHost, bool persistent);

/// The first `bytes` of both, at the builder's place; to run where it stands.
CopyOp copyBytes(::mlir::OpBuilder &builder, ::mlir::Location loc,
                 ::llvm::StringRef name, int64_t bytes, ::mlir::Value from,
                 ::mlir::Value to);

/// A view like this one of another buffer, `begin` bytes further.
::mlir::Value viewLike(::mlir::OpBuilder &builder, ViewOp view,
                       ::mlir::Value buffer, int64_t begin = 0);

} // namespace meshwork::schedule
