// All choices for a model on so many ranks, and what is no part of them.
#pragma once

#include "tools/meshwork/tune/AxisSizes.h"
#include "tools/meshwork/tune/Choice.h"
#include "tools/meshwork/tune/Facts.h"
#include "tools/meshwork/tune/Specs.h"

#include <functional>

namespace meshwork::tune {

class Space {
public:
  ///   hasHost  whether choices may have more in the host's memory
  Space(const Specs &specs, const Facts &facts, const AxisSizes &sizes,
        uint32_t ranks, uint32_t global, bool hasHost);

  using Use = std::function<void(const Choice &)>;
  /// Each of them. Some no spec may say: lib/Spec and the compiler refuse
  /// these.
  void visit(const Use &use) { addAxes(use); }
  /// The same choice with more in the host's memory: states of the optimizer,
  /// or what layers keep. It takes no less time, so it is part of the space
  /// only where `choice` needs too much memory. Each is given once: one with
  /// both follows from that with states.
  void lighter(const Choice &choice, const Use &use) const;
  /// What everybody tries first, with its name. They may be outside of what
  /// --axis and --fixed leave, and are then not among them.
  struct Usual {
    std::string name;
    std::vector<Choice> choices; // the first that fits counts
  };
  std::vector<Usual> usual();
  /// What is never tried, a line each.
  static std::vector<std::string> leftOut();

private:
  using Words = std::vector<const char *>;
  void addAxes(const Use &use);
  void addCopies(Choice choice, const Use &use);
  void addMicro(Choice choice, const Use &use);
  void addContext(Choice choice, const Use &use);
  void addExperts(Choice choice, const Use &use);
  void addSequence(Choice choice, const Use &use);
  void addZero(Choice choice, const Use &use);
  void addReduce(Choice choice, const Use &use);
  void addSchedule(Choice choice, const Use &use);
  void addRecompute(Choice choice, const Use &use);

  std::vector<uint32_t> sizesOf(const char *axis, uint32_t rest) const;
  bool isLeft(const char *axis, uint32_t size) const;
  std::vector<uint32_t> partsOf(const Choice &choice) const;
  /// `words`, or the one that --fixed gives the key.
  Words wordsOf(const char *key, Words words) const;
  std::vector<uint32_t> numbersOf(const char *key,
                                  std::vector<uint32_t> numbers) const;
  bool mayBe(const Choice &choice) const;

  const Specs &specs;
  const Facts &facts;
  const AxisSizes &sizes;
  uint32_t ranks, global;
  /// The mesh has more stages than there are layers, or its copies of the
  /// weights do not divide the batch. One spec of it is enough to be refused.
  bool isOdd = false;
  bool offloadsAll;             // by --fixed
  bool mayOffload, mayMoveKept; // what --fixed leaves
};

} // namespace meshwork::tune
