// Choices by the body that they share (Body.h), and what one body tells of
// others before they are compiled.
#pragma once

#include "tools/meshwork/tune/Body.h"

#include <map>
#include <optional>
#include <tuple>

namespace meshwork::tune {

/// Choices with one body.
struct OfBody {
  Choice body;
  uint32_t global = 1; // sequences of a step of the body
  std::vector<size_t> members;
  std::optional<Body> measured;
};

class Bodies {
public:
  explicit Bodies(uint32_t global) : global(global) {}

  void add(const Choice &choice, size_t which);
  size_t size() const { return all.size(); }
  const OfBody &operator[](size_t which) const { return all[which]; }

  /// Seconds that the ranks which hold a sequence together need at least for
  /// it, added up over them: as measured, or as it follows from measured ones.
  /// Recompute adds work; a rank's part of a larger microbatch, or with fewer
  /// ranks beside it, is computed no slower for each of its tokens, and moves
  /// no more.
  double rankSeconds(size_t which);
  /// What a layer keeps at least: as measured, or in proportion to a smaller
  /// microbatch that was; 0 where none was.
  double keptOfLayer(size_t which) const;
  /// The one that tells of it and of most others: what does least for a token.
  size_t simplest(size_t which) const;
  void note(size_t which, Body body) {
    all[which].measured = std::move(body);
    least.assign(all.size(), -1);
  }

private:
  using Word = std::string_view;
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, bool, Word,
                         Word, Word, Word, uint32_t>;
  Key keyOf(const Choice &body, uint32_t microbatches) const;
  std::vector<Choice> simplerOf(const Choice &body) const;

  uint32_t global;
  std::vector<OfBody> all;
  std::map<Key, size_t> known;
  std::vector<double> least; // rankSeconds(), below 0: not known yet
};

} // namespace meshwork::tune
