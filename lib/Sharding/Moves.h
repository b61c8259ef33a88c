// All single steps from a sharding. Private to this folder.
#pragma once

#include "lib/Sharding/Search.h"

namespace meshwork::sharding {

/// A State with its lists spelled out, and the size of a dim's block after each
/// of its axes.
struct Layout {
  Layout(const Problem &problem, State state);

  int numDims;
  std::array<uint8_t, 32> count{}; // axes of each bin
  std::array<std::array<uint8_t, maxSearchAxes>, 32> axes;
  std::array<std::array<int64_t, maxSearchAxes + 1>, 30> extents;

  int64_t local(int dim) const { return extents[dim][count[dim]]; }
  /// Elements of a block of the dims other than `dim` and `other`.
  int64_t elementsWithout(int dim, int other = -1) const;
  int64_t elements() const { return elementsWithout(-1); }
};

struct Candidate {
  Move move;
  int64_t elements; // local, after the move
};

class Moves {
public:
  explicit Moves(const Problem &problem) : problem(problem) {}

  /// All steps but permutes, in the order that planReshard documents.
  const std::vector<Candidate> &from(State state);

  /// What all states have in common that a permute leads to from `state`,
  /// `state` itself included: what is partial, and the blocks of each dim.
  std::string permuteClass(State state) const;
  /// These states.
  std::vector<State> permuteTargets(State state) const;

private:
  struct Growth; // a dim that gets more axes
  void slices();
  void reduceScatters();
  void allReduces();
  void allGathers();
  void allToAlls(int dim);
  void allToAllsTo(int dim, int count, int64_t numRanks, int toDim);
  void grow(const Growth &growth);
  void emit(Step::Kind kind, int dim, int toDim, int64_t elementsSent,
            State after, int64_t elements);
  void matchDim(const Layout &layout, int dim, Layout &partOf, State state,
                unsigned free, std::vector<State> &found) const;

  const Problem &problem;
  State state;
  const Layout *layout = nullptr;
  std::vector<Candidate> candidates;
};

} // namespace meshwork::sharding
