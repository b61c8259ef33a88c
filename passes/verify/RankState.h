// A rank while a plan runs: where its views are, and what they hold.
#pragma once

#include "lib/Plan/Spaces.h"
#include "passes/interpreter/Tensor.h"
#include "passes/verify/ByteMemory.h"
#include "runtime/machine/Executor.h"

namespace meshwork::verify {

/// A view of a rank, where it lies in one turn of one action.
struct PlacedView {
  const plan::ViewInfo *info;
  uint64_t place; // of its first element; see lib/Plan/Spaces.h

  /// By the plan's number; "f32[4,8] of buffer \"t3\"" for messages.
  std::string text(const plan::Program &program) const;
};

class RankState {
public:
  /// `plan` and `mesh` outlive it.
  static absl::StatusOr<RankState> create(const plan::Plan &plan, uint32_t rank,
                                          const runtime::Mesh &mesh);

  const plan::Program &program() const { return of.program; }
  const runtime::RankProgram &tables() const { return of; }
  /// From here on views are where this instruction finds them.
  void moveTo(const runtime::Where &where) { of.moveTo(where); }
  PlacedView view(uint32_t number) const {
    return {&of.views[number], of.places[number]};
  }
  PlacedView viewIn(const runtime::Where &where, uint32_t number) const {
    return {&of.views[number], of.placeIn(where, number)};
  }

  /// All elements, in the view's shape. dataLoss at bytes that do not hold
  /// them, or that something under way writes.
  absl::StatusOr<interpreter::Tensor> read(const PlacedView &view) const;
  /// As many elements as the view's, in its order. dataLoss at bytes that
  /// something under way uses.
  absl::Status write(const PlacedView &view, const interpreter::Tensor &values);

  /// Whatever the bytes hold: elements of any type, or nothing, as between two
  /// tensors. Both views have no gaps. dataLoss where something under way does
  /// not let them be used so.
  absl::Status copy(const PlacedView &from, const PlacedView &to);

  /// dataLoss where something under way does not let the view be used so.
  absl::Status check(const PlacedView &view, ByteMemory::Use use) const;
  /// Holds the view's bytes for what runs beside the rank's instructions.
  void begin(const PlacedView &view, ByteMemory::Use use);
  void end(const PlacedView &view, ByteMemory::Use use);

private:
  RankState(runtime::RankProgram program)
      : of(std::move(program)), memory(plan::bytesOfArenas(of.program)) {}
  std::string nameOfBuffer(uint32_t buffer) const;
  absl::Status problemAt(const PlacedView &view, uint64_t place,
                         const char *does) const;

  runtime::RankProgram of;
  ByteMemory memory;
};

} // namespace meshwork::verify
