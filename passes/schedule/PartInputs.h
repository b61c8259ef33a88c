// Numbers that the runtime writes of a rank's part of a dim.
#pragma once

#include "passes/schedule/Placement.h"

namespace meshwork::schedule {

/// Where they lie: each is one input of the program, however many ops ask.
class PartInputs {
public:
  struct Input {
    InputKind kind;
    Place place;
    mesh::DimShardingAttr split;
    int64_t size, hop;
  };

  explicit PartInputs(Placement &placement) : placement(placement) {}

  /// Whether `op` is such numbers.
  static bool isOne(::mlir::Operation *op);
  /// Puts the result of one where they lie.
  void place(::mlir::Operation *op);
  /// Where a rank's block of a dim of `size` elements begins.
  Place coordinate(::mlir::ArrayAttr axes, int64_t size);
  /// By their names.
  const std::map<std::string, Input> &all() const { return inputs; }

private:
  Place input(const mesh::PartNumbers &numbers,
              ::llvm::ArrayRef<int64_t> shape);

  Placement &placement;
  std::map<std::string, Input> inputs;
};

} // namespace meshwork::schedule
