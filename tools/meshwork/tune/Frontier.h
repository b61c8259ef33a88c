// All choices by what is known of them, and which is to be compiled next: that
// with the least bound of its seconds. What is too large by a bound of its
// bytes is left out.
#pragma once

#include "lib/Cost/OfSpec.h"
#include "tools/meshwork/tune/Bodies.h"
#include "tools/meshwork/tune/BodyBound.h"
#include "tools/meshwork/tune/Kin.h"
#include "tools/meshwork/tune/Space.h"

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>

namespace meshwork::tune {

class Frontier {
public:
  static constexpr size_t none = std::numeric_limits<size_t>::max();
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  /// `spec` has the keys that are no part of the choices; `limit` is bytes of a
  /// rank, 0: none.
  Frontier(const spec::Spec &spec, const Facts &facts, Bound::Given given,
           uint64_t limit)
      : facts(facts), limit(limit), global(spec.batch.global),
        windowBytes(static_cast<double>(spec.offload.windowBytes)),
        bounds(spec, facts, given), ofBodies(bounds, spec, facts, given, limit),
        bodies(spec.batch.global, facts.hasExperts, cost::machineOf(spec),
               {cost::machineOf(spec), windowBytes}) {}
  Frontier(const Frontier &) = delete;
  Frontier &operator=(const Frontier &) = delete;

  /// To be called once.
  void add(Space &space);

  /// What is compiled next: a body, or a choice with few layers, with balanced
  /// stages whether they fit or not, or as the compiler takes it.
  struct Next {
    enum Kind {
      body,
      splitSketch,
      stages,
      sketch,
      balanced,
      whole
    } kind = whole;
    size_t which = 0;    // body, or choice
    Choice choice = {};  // with `stages` that which tells of it
    uint32_t global = 0; // sequences of its step, of a body
    double bound = 0;    // seconds
    double bytes = 0;    // likewise, of a choice
  };
  /// Nothing where no bound is below `seconds`. Choices take turns with
  /// bodies, so that an early Ctrl-C finds something good.
  std::optional<Next> next(double seconds);
  /// The bodies that tell most of others; to be compiled first.
  std::vector<Next> roots();
  /// Likewise sketches that tell what split backward passes keep.
  std::vector<Next> rootSketches();
  void noteSplit(size_t choice, const Sketch &sketch);
  /// What was compiled, or null where it cannot be.
  void note(size_t body, const Body *measured);
  /// The same of a sketch whose Next had this bound.
  void note(size_t choice, double bound, const Sketch *sketch);
  /// Likewise of what tells of stages of a choice.
  void noteStages(size_t choice, double bound, const Sketch *sketch);
  /// The same of a choice with balanced stages. If they do not fit, it comes
  /// back with what other layers take at least.
  void noteBalanced(size_t choice, const Costed &balanced);
  /// Of a whole choice, and whether it is short of memory: it does not fit, or
  /// only with layers that are shared unevenly.
  void noteWhole(size_t choice, bool isShort);
  /// With it, the same choices with more in the host's memory.
  void noteRefused(size_t choice, const std::string &why);
  double secondsOf(const Choice &choice) const {
    return bounds.seconds(choice);
  }

  /// By the bound of its bytes, before anything of it is compiled.
  bool mayFit(const Choice &choice) const {
    return limit == 0 || bounds.bytes(choice) <= static_cast<double>(limit);
  }

  size_t size() const { return count; }
  /// Choices whose bodies are refused, or which noteRefused() told, by reason.
  const std::map<std::string, size_t> &refused() const { return refusals; }
  size_t tooLarge() const { return numTooLarge; }
  /// Of what is too large, that with the least bound.
  const std::optional<Choice> &smallest() const { return leastLarge; }
  /// The first with more stages than the model has layers, and how many have.
  const std::optional<Choice> &unlayered() const { return firstUnlayered; }
  size_t numUnlayered() const { return countUnlayered; }
  /// Of all that next() has not given: how many choices, and their least bound.
  /// What takes no less than a choice that fits counts, too.
  std::pair<size_t, double> left();

private:
  struct Node {
    double bound;
    size_t which;
    /// Of a choice: what is known of it. Balanced stages that do not fit leave
    /// it to the compiler to search for others.
    enum Level {
      ofBody,
      simulated,
      ofStages,
      ofKin,
      all,
      unbalanced
    } level = all;
    uint32_t ranks = 0; // of a body: that share its microbatch
    double alone = 0;   // of a choice: its bound, without what kin told
    bool operator>(const Node &other) const {
      return std::tie(bound, ranks, which) >
             std::tie(other.bound, other.ranks, other.which);
    }
  };
  /// The least bound first.
  struct Nodes : std::priority_queue<Node, std::vector<Node>, std::greater<>> {
    const std::vector<Node> &all() const { return c; }
  };

  /// What is known of a body.
  enum class State { waiting, started, known, refused, unknowable };

  void add(const Choice &choice);
  void admit(const Choice &choice);
  void place(size_t which, size_t body);
  void placeByBody(size_t which);
  void pushChanged();
  bool isTooLarge(double bytes) const {
    return limit > 0 && bytes > static_cast<double>(limit);
  }
  void countTooLarge(const Choice &choice, double bytes);
  void leaveOut(size_t which, double bytes);
  void admitLighter(const Choice &choice);
  void giveWay(size_t which);
  size_t familyOf(const Choice &choice) const;
  size_t specsOf(size_t which) const;
  size_t specsOfBody(size_t body) const;
  double boundOfBody(size_t which);
  Node unknownBody(size_t which, double bound) const;
  bool isSketched(const Choice &choice) const;
  bool tellsOfSplit(const Choice &choice) const;
  Body measuredBody(const Choice &choice);
  double leastBytes(size_t which, size_t member);
  double bytesOf(const Choice &choice);
  std::optional<Next>
  nextInTurn(const std::function<bool(const Nodes &)> &isWanted);
  std::optional<Next> nextBody();
  Next nextChoice(Nodes &nodes);
  Next::Kind kindOf(const Node &node);
  void tighten();
  void tightenByBody(const Node &node);
  Node byKin(Node node);
  bool hasStages(const Choice &choice) const;
  bool isOpen(const Node &node) const;
  void tightenByStages(Node node);
  void noteStages(const Choice &fewest, const InnerStage &inner);
  bool tightenByKin(Nodes &nodes);
  void noteKin(const Choice &choice, const Body &body, const Sketch &sketch,
               double seconds);
  void refuse(size_t which, const std::string &why);
  void push(const Node &node);
  Next ofBody(size_t which, double bound);

  const Facts &facts;
  const Space *space = nullptr;
  uint64_t limit;
  uint32_t global;    // sequences of a step
  double windowBytes; // of states on their way
  Bound bounds;
  BodyBound ofBodies;
  std::vector<Choice> choices;            // that may fit
  std::vector<BodyBound::Beside> besides; // of each
  std::vector<bool> isLeftOut, hasGivenWay;
  Bodies bodies;
  Kin kin;
  /// By the choices that tell them, and what waits for them.
  struct Stages {
    bool isDone = false;
    InnerStage inner;
    std::vector<Node> waiting;
  };
  std::map<Choice, Stages> stages;
  std::vector<State> states;             // by body
  std::map<size_t, std::string> reasons; // of those that are refused
  std::set<size_t> changed;              // bodies with new choices
  Nodes unknown, known;                  // bodies; choices whose body is known
  Nodes ready; // choices of which only a whole plan tells more
  uint32_t turn = 0;
  size_t count = 0, numTooLarge = 0, countUnlayered = 0, numSlower = 0;
  std::map<std::string, size_t> refusals;
  double leastTooLarge = infinity; // bytes of leastLarge
  std::optional<Choice> leastLarge, firstUnlayered;
};

} // namespace meshwork::tune
