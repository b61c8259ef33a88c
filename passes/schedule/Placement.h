// Where tensors lie: each value of the step as a strided part of one buffer.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/schedule/States.h"

namespace meshwork::schedule {

/// Finds the place of each value: state that it is assigned to, if nothing
/// reads the old content later; a whole that it is a part of; or else a buffer
/// of its own.
class Placement {
public:
  /// `rowBytes`: see Passes.td at row-bytes.
  Placement(ProgramOp program, ::mlir::ModuleOp module, int64_t rowBytes)
      : buffers(program, rowBytes), states(module, buffers),
        mesh(mesh::meshOf(module)) {}

  ::mlir::FailureOr<Place> of(::mlir::Value value);
  /// Of the state that `assign` writes, or of the part of it, as it is then.
  ::mlir::FailureOr<Place> ofState(transformer::AssignOp assign);
  /// Where it lies, if that has been asked before; else null.
  const Place *known(::mlir::Value value) const {
    auto found = places.find(value);
    return found == places.end() ? nullptr : &found->second;
  }
  /// Puts `value` where another one lies.
  void set(::mlir::Value value, Place place) { places[value] = place; }
  /// Puts `result` where `operand` lies, which must have no other use; what a
  /// repeat carries may have some in front of it.
  ::mlir::LogicalResult takeOver(::mlir::Value operand, ::mlir::Value result);
  /// Ranks that differ only along `axes`.
  int64_t groupSize(::mlir::ArrayAttr axes) const;

  Buffers buffers;
  States states;

private:
  ::mlir::FailureOr<Place> find(::mlir::Value value);
  ::mlir::FailureOr<Place> yielded(::mlir::Value value,
                                   transformer::RepeatOp repeat);
  ::mlir::FailureOr<Place> gathered(mesh::AllGatherOp gather);
  /// Where a read of a state finds it, and whether an assignment in front of it
  /// has changed it.
  Place read(::mlir::Operation *op);
  void findUses(::mlir::Block &block);
  /// Whether nothing behind `maker` reads what the state holds before `assign`.
  bool areReadBefore(transformer::AssignOp assign, ::mlir::Operation *maker);

  mesh::MeshAttr mesh; // null: one rank
  // Of the states in a block, by parameter.
  ::mlir::Block *usesIn = nullptr;
  ::llvm::StringMap<::llvm::SmallVector<::mlir::Operation *>> reads, assigns;
  ::llvm::DenseMap<::mlir::Value, Place> places;
};

} // namespace meshwork::schedule
