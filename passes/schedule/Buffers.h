// Buffers of a program.
#pragma once

#include "passes/schedule/Place.h"

namespace meshwork::schedule {

/// What products of GPUs have fast kernels for: `size`, or a little more where
/// no eight elements divide it. `unit` is a power of two, in elements.
int64_t fastExtent(int64_t size, int64_t unit);

/// Makes them before the lists, with rows side by side, or with room behind
/// each row or behind the last, where products are faster with it.
class Buffers {
public:
  /// `rowBytes`: see Passes.td at row-bytes.
  Buffers(ProgramOp program, int64_t rowBytes)
      : program(program), builder(program.getContext()), rowBytes(rowBytes) {}

  /// Row-major, for the whole run; with room behind the last row if it
  /// `mayGrow`.
  Place persistent(const ::llvm::Twine &name, BufferKind kind,
                   ::llvm::ArrayRef<int64_t> shape, ::mlir::Type element,
                   bool mayGrow = false);
  /// A gradient that ranks have summed, kept to the end of the step.
  Place reducedGradient(::mlir::RankedTensorType type);
  /// Of a weight, made by a step for all its microbatches.
  Place copyOfWeight(::mlir::Value value);
  /// Lives as long as something uses it.
  Place temporary(::mlir::Value value);
  /// A temporary like `place`, its dims from the outermost to the innermost in
  /// `order`.
  Place temporary(const Place &place, ::llvm::ArrayRef<int64_t> order);
  /// A temporary that a gather fills.
  Place gathered(::mlir::Value value);

  /// Whether the elements of `loop` from where `loops` ends up to `size` are
  /// nobody's: behind the rows of its buffer, or behind the last of them.
  /// `loops` is a matrix, [batch, one, other].
  bool hasRoom(const Place &loops, int64_t loop, int64_t size) const;
  /// Where rows begin, in bytes; 0: side by side.
  int64_t bytesOfRows() const { return rowBytes; }

private:
  /// A tensor of rows, each a run of its last dim, and how much of it is
  /// stored; in elements.
  struct Room {
    int64_t rows, row, storedRows, storedRow;
  };
  /// Rows `rowElements` apart (0: side by side).
  Place make(const ::llvm::Twine &name, BufferKind kind, bool isPersistent,
             ::llvm::ArrayRef<int64_t> shape, ::mlir::Type element,
             int64_t rowElements = 0, bool mayGrow = false);
  int64_t rowElementsOf(::mlir::Value value) const;

  ProgramOp program;
  ::mlir::OpBuilder builder; // before the first list
  int64_t rowBytes;
  ::mlir::Operation *firstList = nullptr;
  ::llvm::DenseMap<::mlir::Value, Room> rooms; // by buffer
  int64_t numTemporaries = 0;
};

} // namespace meshwork::schedule
