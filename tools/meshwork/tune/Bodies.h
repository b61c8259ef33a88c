// Choices by the body that they share (Body.h), and what one body tells of
// others before they are compiled.
#pragma once

#include "tools/meshwork/tune/Body.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace meshwork::tune {

/// Choices with one body.
struct OfBody {
  Choice body;
  uint32_t microbatches = 1; // of a step of the body
  std::vector<size_t> members;
  std::optional<Body> measured;
  double splitKept = 0; // by its own sketches; 0: there is none
};

class Bodies {
public:
  ///   gathersApart  as of bodyOf()
  Bodies(uint32_t global, bool gathersApart, const cost::Machine &machine,
         const HostTraffic &traffic)
      : global(global), gathersApart(gathersApart), growth(machine),
        traffic(traffic) {}

  /// Returns its body.
  size_t add(const Choice &choice, size_t which);
  /// The body of a choice that was added.
  size_t of(const Choice &choice) const;
  size_t size() const { return all.size(); }
  const OfBody &operator[](size_t which) const { return all[which]; }

  /// Seconds that the ranks which hold a sequence together need at least for
  /// it, added up over them: as measured, or as it follows from measured ones.
  /// Recompute adds work; a rank's part of a larger microbatch, or with fewer
  /// ranks beside it, is computed no slower for each of its tokens, and moves
  /// no more. What moves among more ranks takes them longer.
  struct Seconds {
    double all = 0;
    double unexposed = 0; // without half of what ranks wait for
    Waits waits;          // of these

    void raise(const Seconds &other);
    Seconds times(double factor) const {
      return {factor * all, factor * unexposed, waits.times(factor)};
    }
    double of(const Choice &choice) const {
      return choice.zeroStage == 3 ? unexposed : all;
    }
  };
  Seconds rankSeconds(size_t which);
  /// What a layer keeps at least: as measured, or in proportion to a smaller
  /// microbatch, or one on fewer ranks, that was; 0 where none was.
  double keptOfLayer(size_t which) { return kept.of(*this, which); }
  /// The same of a schedule that splits the backward pass, by sketches.
  double splitKeptOfLayer(size_t which) { return splitKept.of(*this, which); }
  /// What tells most of others: of each recompute, those on the fewest ranks
  /// with the smallest microbatch and with the largest.
  const std::vector<size_t> &roots() const { return rootBodies; }
  /// To be called when all choices were added.
  void findRoots();
  void note(size_t which, Body body) {
    if (!body.toHost.empty())
      moving.push_back(which);
    all[which].measured = std::move(body);
    least.assign(all.size(), std::nullopt);
    kept.known.clear();
  }
  /// Those that are refused as this one is, for `why` ("key: message"), and
  /// were not measured: what does not divide does not with more ranks either.
  std::vector<size_t> refusedWith(size_t which, const std::string &why) const;
  /// What a sketch tells of a layer where the backward pass is split.
  void noteSplit(size_t which, double bytes) {
    double &least = all[which].splitKept;
    least = least == 0 ? bytes : std::min(least, bytes);
    splitKept.known.clear();
  }

private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, bool, Word,
                         Word, Word, Word, uint8_t, uint32_t>;
  Key keyOf(const Choice &body, uint32_t microbatches) const;
  Key keyOf(const Choice &choice) const;
  std::vector<Choice> keepingLess(const Choice &body) const;
  std::vector<Choice> onFewerRanks(const Choice &body) const;
  std::vector<Choice> withMoreOnARank(const Choice &body) const;
  std::vector<size_t> simplerThan(size_t which) const;
  std::vector<size_t> fasterThan(size_t which) const;
  Seconds ofMeasured(size_t which) const;
  Seconds withTraffic(Seconds seconds, const Choice &body) const;
  Seconds grown(const Seconds &seconds, const Choice &from, const Choice &body);
  std::vector<size_t> find(size_t which, const std::vector<Choice> &bodies,
                           uint32_t most) const;

  uint32_t global;
  bool gathersApart;
  WaitGrowth growth;
  HostTraffic traffic;
  std::vector<size_t> moving; // measured ones that move what layers keep
  std::vector<OfBody> all;
  std::vector<size_t> rootBodies;
  std::map<Key, size_t> known;
  std::vector<std::optional<Seconds>> least; // nothing: not known yet
  /// Bytes of a layer, of all bodies, by those that were measured.
  struct Kept {
    double (*measured)(const OfBody &body); // 0: not known
    std::vector<double> known = {};         // below 0: not known yet

    double of(Bodies &bodies, size_t which);
  };
  Kept kept{[](const OfBody &body) {
    return body.measured && body.measured->status == Costed::done
               ? body.measured->leastKept
               : 0;
  }};
  Kept splitKept{[](const OfBody &body) { return body.splitKept; }};
};

} // namespace meshwork::tune
