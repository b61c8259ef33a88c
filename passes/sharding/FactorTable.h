// An op's factors, and how the shardings of its tensors meet on them.
//
// Operands come first, then results; `tensor` counts through both.
#pragma once

#include "passes/sharding/Shardings.h"

namespace meshwork::sharding {

/// One tensor's sharding as an op's neighbour sees it.
struct Proposal {
  const std::vector<Axes> *dims; // null: has nothing to say
  bool isParameter; // of a parameter, a copy of it, or its gradient: does not
                    // move for others
};

class FactorTable {
public:
  explicit FactorTable(::mlir::Operation *op);

  unsigned numTensors() const { return tensors.size(); }
  ::mlir::Value tensor(unsigned i) const { return tensors[i]; }
  ::llvm::ArrayRef<::mlir::Value> values() const { return tensors; }
  unsigned numOperands() const { return operands; }
  ::llvm::ArrayRef<transformer::Factor> factors() const { return all; }

  /// The axes of each factor when all tensors' proposals are heard: an axis
  /// serves one factor, and one that exchanges beside it. Decided by, in this
  /// order: a parameter has it there; more tensors have it there; they have
  /// more bytes; the factor comes first. Proposals for one factor that disagree
  /// are cut to what the strongest says
  /// (`aggressive`) or to what all agree on.
  std::vector<Axes> decide(const Mesh &mesh,
                           ::llvm::ArrayRef<Proposal> proposals,
                           bool aggressive) const;
  /// Drops axes that dimsOf() would leave out of some tensor: all tensors of an
  /// op are split alike, or what is computed whole would be summed.
  void dropScattered(const Mesh &mesh, std::vector<Axes> &factorAxes) const;
  /// What tensor i's dims are when factors have these axes; axes that would not
  /// divide a compound dim into contiguous blocks are left out.
  std::vector<Axes> dimsOf(const Mesh &mesh, unsigned tensor,
                           ::llvm::ArrayRef<Axes> factorAxes) const;
  /// Whether two factors have it: one of them exchanges.
  bool isExchanged(AxisId axis, ::llvm::ArrayRef<Axes> factorAxes) const;
  /// Axes over which result i is partial then, and how it combines.
  Sharding resultSharding(const Mesh &mesh, unsigned result,
                          ::llvm::ArrayRef<Axes> factorAxes) const;
  /// Why `axis` went to a factor and not to another one, in words: "a weight
  /// has it there".
  std::string whyStronger(size_t winner, size_t loser, AxisId axis,
                          const Mesh &mesh,
                          ::llvm::ArrayRef<Proposal> proposals) const;
  /// The dim of a tensor along a factor, or a negative number.
  int64_t dimOf(unsigned tensor, const transformer::Factor &factor) const;

private:
  /// The part of a dim's axes that runs along each factor; by factor.
  std::vector<Axes> project(const Mesh &mesh, unsigned tensor,
                            const std::vector<Axes> &dims) const;

  ::llvm::SmallVector<transformer::Factor> all;
  ::llvm::SmallVector<::mlir::Value> tensors;
  unsigned operands = 0;
};

} // namespace meshwork::sharding
