// Which instructions touch the same bytes, and so keep their order; how one
// moves.
#pragma once

#include "dialects/schedule/Schedule.h"

namespace meshwork::schedule {

/// Bytes of a buffer that an instruction touches: their range on the first
/// rank, or all of it where a shift or the turns of a repeat move them.
struct Use {
  BufferOp buffer;
  int64_t begin, end;
  bool isWritten;

  bool conflicts(const Use &other) const {
    return buffer == other.buffer && (isWritten || other.isWritten) &&
           begin < other.end && other.begin < end;
  }
};
/// Of a repeat: those of what is in it.
::llvm::SmallVector<Use> usesOf(::mlir::Operation *instruction);

/// Whether one writes bytes that the other touches. Bytes within one buffer
/// are told apart by their range on the first rank, unless a shift moves them.
bool conflict(::mlir::Operation *a, ::mlir::Operation *b);

/// Moves an instruction and its views in front of `before`, or to the end of
/// `block` when that is null.
void moveInstruction(::mlir::Operation *instruction, ::mlir::Block *block,
                     ::mlir::Operation *before);

} // namespace meshwork::schedule
