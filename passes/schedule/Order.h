// Which instructions touch the same bytes, and so keep their order; how one
// moves.
//
//   PackedProgram tables(program);
//   FailureOr<Uses> uses = Uses::of(program, tables);
//   bool keepTheirOrder = uses->conflict(a, b);
#pragma once

#include "dialects/schedule/ProgramTables.h"
#include "lib/Plan/Views.h"

namespace meshwork::schedule {

/// Bytes that an instruction touches.
struct Use {
  BufferOp buffer;
  const plan::ViewInfo *view; // one for all views that say the same
  bool isWritten;

  /// Whether one writes bytes that the other touches, on some rank. A view that
  /// advances stands for its whole buffer: what moves past a repeat moves past
  /// all its turns.
  bool conflicts(const Use &other) const;
};

/// Bytes in buffers that come and go, of those that are written or of all.
int64_t passingBytes(::llvm::ArrayRef<Use> uses, bool onlyWritten = false);

/// What the instructions of a program touch, by its tables. They may move
/// after that; those that are made later are not known.
class Uses {
public:
  /// `tables` are those of `program` and must outlive this. An error is that of
  /// a view, such as one that leaves its buffer on some rank.
  static ::mlir::FailureOr<Uses> of(ProgramOp program, PackedProgram &tables);

  /// Of a repeat: those of what is in it.
  ::llvm::ArrayRef<Use> operator[](::mlir::Operation *instruction) const {
    return all.at(instruction);
  }
  bool conflict(::mlir::Operation *a, ::mlir::Operation *b) const;

private:
  std::vector<plan::ViewInfo> views; // by number
  ::llvm::DenseMap<::mlir::Operation *, ::llvm::SmallVector<Use>> all;
};

/// Moves an instruction and its views in front of `before`, or to the end of
/// `block` when that is null.
void moveInstruction(::mlir::Operation *instruction, ::mlir::Block *block,
                     ::mlir::Operation *before);

} // namespace meshwork::schedule
