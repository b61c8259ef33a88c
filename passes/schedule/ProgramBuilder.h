// Where instructions are written, and what each says of itself.
#pragma once

#include "passes/schedule/Placement.h"

namespace meshwork::schedule {

/// Writes the lists of a program from the first to the last. Its insertion
/// point is the end of the current list, or of a repeat there.
///
///   builder.beginList(ListKind::forward);
///   builder.fill(op.getLoc(), "zero around parts", place);
class ProgramBuilder : public ::mlir::OpBuilder {
public:
  /// Begins with the lists `once` and `step`, both empty; no list is current.
  /// Parameters of `module` say which layer an instruction is of.
  ProgramBuilder(ProgramOp program, ::mlir::ModuleOp module);

  /// What is written from here on goes to a new list behind all others.
  void beginList(ListKind kind, int64_t stage);
  /// An empty list at the insertion point.
  ListOp addList(ListKind kind, int64_t stage);
  void toEndOf(ListOp list) { setInsertionPointToEnd(&list.getBody().front()); }

  ::mlir::Value view(::mlir::Location loc, const Place &place) {
    return viewOf(*this, loc, place);
  }
  /// Counts past what the attribute holds are its largest.
  ::mlir::IntegerAttr i64(uint64_t value) {
    return getI64IntegerAttr(
        static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
  }
  /// Zeros in `place`, which is one that the instruction takes.
  void fill(::mlir::Location loc, const ::llvm::Twine &what,
            const Place &place);
  /// The same in all of a dense `place`, when a step starts.
  void fillAtStepStart(const ::llvm::Twine &what, Place place);
  /// The block of `from` along `dim` that begins at the number in `first`.
  void copyBlock(::mlir::Location loc, ::llvm::StringRef what, int64_t dim,
                 const Place &from, const Place &first, const Place &to);

  /// Names the parameter that an op reads, or else what it is.
  ::mlir::StringAttr sourceOf(::mlir::Operation *op);
  /// Instructions behind `before`, made of `op`, are of its parameter's layer,
  /// or of its own.
  void noteLayer(::mlir::Operation *op, ::mlir::Operation *before);

  ProgramOp program;
  ListOp once, step;

private:
  ::llvm::StringMap<int64_t> layers; // of parameters
};

} // namespace meshwork::schedule
