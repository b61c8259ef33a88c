// Copies between where a tensor lies and where an instruction can use it.
#pragma once

#include "passes/schedule/Layout.h"
#include "passes/schedule/PartInputs.h"
#include "passes/schedule/Sums.h"

namespace meshwork::schedule {

/// Finds a place with the loops that an instruction wants: the tensor's own,
/// else a copy's, from which what is written is copied back behind it.
///
///   copies.begin(op);
///   FailureOr<Place> ids = copies.readable(op.getIds(), rowsLayout(2, 0));
///   ... // the instruction
///   copies.copyBack();
class Copies {
public:
  Copies(ProgramBuilder &builder, Placement &placement, PartInputs &inputs,
         Sums &sums)
      : builder(builder), placement(placement), inputs(inputs), sums(sums) {}

  /// What is asked for next is of this op.
  void begin(::mlir::Operation *op) { current = op; }
  ::mlir::FailureOr<Place> readable(::mlir::Value value, const Layout &layout);
  ::mlir::FailureOr<Place> writable(::mlir::Value value, const Layout &layout);
  Place writable(Destination &destination, const Layout &layout,
                 ::mlir::Location loc);
  /// A place of its own for what is copied to `place` after the instruction.
  Place beside(const Place &place, const Layout &layout, ::mlir::Location loc);
  void copyBack();

  void copy(::mlir::Location loc, const Place &from, const Place &to);
  /// What was read so far was read in another list.
  void forget() { known.clear(); }

private:
  void copyLoopsFrom(::mlir::Location loc, Place from, Place to,
                     ::llvm::SmallVector<CopyLoop> loops);

  ProgramBuilder &builder;
  Placement &placement;
  PartInputs &inputs;
  Sums &sums;
  ::mlir::Operation *current = nullptr;
  std::map<std::tuple<const void *, Layout::Dims, bool>, Place>
      known; // of what is read, by the order of dims and the pass
  struct Back {
    ::mlir::Location loc;
    Place from, to;
  };
  std::vector<Back> backs; // after the current instruction
};

} // namespace meshwork::schedule
