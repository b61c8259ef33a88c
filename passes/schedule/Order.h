// Which instructions touch the same bytes, and so keep their order; how one
// moves.
#pragma once

#include "dialects/schedule/Schedule.h"
#include <vector>

namespace meshwork::schedule {

/// Bytes of a buffer that an instruction touches: their range on the first
/// rank, or all of it where a shift moves them.
struct Use {
  BufferOp buffer;
  int64_t begin, end;
  bool isWritten;

  bool conflicts(const Use &other) const {
    return buffer == other.buffer && (isWritten || other.isWritten) &&
           begin < other.end && other.begin < end;
  }
};
::llvm::SmallVector<Use> usesOf(::mlir::Operation *instruction);

/// Whether one writes bytes that the other touches. Bytes within one buffer
/// are told apart by their range on the first rank, unless a shift moves them.
bool conflict(::mlir::Operation *a, ::mlir::Operation *b);

/// What instructions touch, by buffer: finds conflicts with one of many without
/// looking at the others.
class UseIndex {
public:
  /// Numbers rise from call to call.
  void add(::mlir::Operation *instruction, int64_t number);
  /// Of those with numbers in [from, to) that conflict with `instruction`, the
  /// first or the last number; `none` where there is none.
  int64_t firstConflict(::mlir::Operation *instruction, int64_t from,
                        int64_t to, int64_t none) const;
  int64_t lastConflict(::mlir::Operation *instruction, int64_t from, int64_t to,
                       int64_t none) const;
  /// Calls `visit` with each such number, some more than once.
  void forEachConflict(::mlir::Operation *instruction, int64_t from, int64_t to,
                       ::llvm::function_ref<void(int64_t number)> visit) const;

private:
  struct Entry {
    int64_t number;
    Use use;
  };
  /// Those of a buffer with numbers in [from, to).
  ::llvm::ArrayRef<Entry> entries(BufferOp buffer, int64_t from,
                                  int64_t to) const;

  ::llvm::DenseMap<::mlir::Operation *, std::vector<Entry>> byBuffer;
};

/// Moves an instruction and its views in front of `before`, or to the end of
/// `block` when that is null.
void moveInstruction(::mlir::Operation *instruction, ::mlir::Block *block,
                     ::mlir::Operation *before);

} // namespace meshwork::schedule
