// What no plan of a choice can take less than, once its body was compiled. To
// what a rank computes it adds what moves between copies of the weights, and
// what a pipeline's ranks wait for. Like those of Bound.h, these figures are
// below those of the plans (test/EndToEnd/test_tune.py compares).
#pragma once

#include "lib/Cost/Times.h"
#include "tools/meshwork/tune/Body.h"
#include "tools/meshwork/tune/Bound.h"
#include "tools/meshwork/tune/Sketch.h"
#include "tools/meshwork/tune/StageMemory.h"
#include "tools/meshwork/tune/Tables.h"

#include <functional>

namespace meshwork::tune {

/// The part of a body's seconds that a choice takes at least.
double sureOf(const Choice &choice, const Body &body);

class BodyBound {
public:
  /// `spec` has the keys that are no part of the choices; `limit` is bytes of a
  /// rank, 0: none.
  BodyBound(const Bound &bound, const spec::Spec &spec, const Facts &facts,
            Bound::Given given, uint64_t limit);

  /// Of a choice whose body is not known but by Bodies::rankSeconds:
  ///   rankSeconds * part, and beside it what moves
  struct Beside {
    double part = 1;
    double moving = 0, tails = 0, update = 0; // seconds of a step
    bool takesCores = false, isPipeline = false;
  };
  Beside besideOf(const Choice &choice);
  double seconds(const Beside &beside, double rankSeconds) const;

  /// Quick: stages are as even as can be.
  double seconds(const Choice &choice, const Body &body);
  double bytes(const Choice &choice, const Body &body);
  /// Where each layer keeps at least so many bytes for each microbatch, or
  /// where the backward pass is split.
  double bytes(const Choice &choice, double keptOfLayer, double splitKept);
  /// What a layer keeps where the backward pass is split, as a sketch of such a
  /// pipeline tells it; 0 where it does not.
  double splitKept(const Choice &choice, const Sketch &sketch);

  /// Of a pipeline: by its own table, which is simulated with the layers that
  /// the compiler should find for its stages. Infinite where no layers fit.
  ///   sketch  null: not known yet
  double simulated(const Choice &choice, const Body &body,
                   const Sketch *sketch = nullptr);
  /// The same by what a stage between others takes.
  double ofLists(const Choice &choice, const Body &body,
                 const InnerStage &inner);
  /// Whether memory has no room for the layers of balanced stages.
  bool isCrowded(const Choice &choice, const Body &body,
                 const Sketch *sketch = nullptr);
  /// By its sketch, too; infinite where it does not fit.
  double sketched(const Choice &choice, const Body &body, const Sketch &sketch);
  /// Whether the compiler searches for the layers of its stages.
  bool hasLayouts(const Choice &choice);
  /// Seconds of a pipeline whose balanced stages do not fit, with the layers
  /// that the compiler should find. Infinite where none fit.
  double unbalanced(const Choice &choice, const Body &body,
                    const Costed &balanced);
  /// Seconds that one with balanced stages takes beyond what the body tells.
  double beyondBalanced(const Choice &choice, const Body &body, double seconds);
  /// Seconds that its sketch takes beyond what the body tells, at least,
  /// whatever layers its stages have.
  double beyondBody(const Choice &choice, const Body &body,
                    const Sketch &sketch);

private:
  /// Seconds in which a stage moves what ranks with the same weights share.
  struct Moved {
    double forward = 0, backward = 0; // in each microbatch
    double last = 0;                  // beside the last backward pass
    /// After the last gradient of a step: no work is left to hide it.
    double lastTail = 0;
    /// Likewise of a list that sums. Stages of a rank share what is summed once
    /// in a step, so the last of it may be none of theirs.
    double tail = 0;
    double update = 0; // after it
    double states = 0; // of the optimizer, from the host beside the update
    bool takesCores = false;
  };
  double bytesOfReduced(const Choice &choice) const;
  Moved movedOf(const Choice &choice, double layers) const;
  void addStates(const Choice &choice, const cost::Times &times,
                 double parameters, Moved &moved) const;
  void addSums(const cost::Times &times, const Choice &choice, double layers,
               double parameters, const std::vector<uint32_t> &axes,
               Moved &moved) const;
  double secondsOfSum(const cost::Times &times, const Choice &choice,
                      double bytes, const std::vector<uint32_t> &axes) const;
  void addCopies(const cost::Times &times, const Choice &choice, double bytes,
                 Moved &moved) const;
  const StepTable *tableOf(const Choice &choice);
  double waitsOf(const Choice &choice);
  double besides(bool takesCores, double computing, double moving) const {
    return tune::besides(machine, takesCores, computing, moving);
  }
  double meanBackward(const Choice &choice, const Moved &moved,
                      double computing) const;
  double updateOf(const Choice &choice, const Moved &moved, double whole) const;
  using Layers = std::vector<int64_t>; // of virtual stages
  std::vector<uint64_t> bytesOfRanks(const StepTable &table,
                                     const StageMemory::Costs &costs,
                                     const Sketch *sketch,
                                     const Layers &layers) const;
  using BytesOf = std::function<std::vector<uint64_t>(const Layers &)>;
  std::optional<Layers> layersOf(const Choice &choice, const StepTable &table,
                                 const BytesOf &bytesOf) const;
  std::vector<uint64_t> bytesBeside(const StepTable &table,
                                    const StageMemory::Costs &costs,
                                    const Costed &balanced,
                                    const Layers &layers) const;
  double ofLayers(const Choice &choice, const Body &body,
                  const StepTable &table, const Layers &layers) const;
  double ofLine(const Choice &choice) const;
  void takeLists(const InnerStage &inner, const Layers &layers, bool splits,
                 double part, schedules::Costs &costs) const;
  std::optional<Layers> layersOfBody(const Choice &choice, const Body &body,
                                     const StepTable &table,
                                     const Sketch *sketch) const;
  double unseen(const Choice &choice, const Body &body, const StepTable &table,
                const Sketch &sketch, const Layers &layers) const;
  std::vector<OfLayer> ofStages(const Body &body, const Layers &layers) const;
  schedules::Costs costsOf(const Choice &choice, const Body &body,
                           const StepTable &table, const Layers &layers) const;
  double transferOf(const Choice &choice) const;
  StageMemory::Costs bytesOf(const Choice &choice, const StepTable &table,
                             double keptOfLayer, double splitKept,
                             double otherBytes = 0) const;
  StageMemory memoryOf(const Choice &choice, const Body &body,
                       const StepTable &table) const;
  double ofFullest(const Choice &choice, const Body &body,
                   const StepTable &table) const;
  double updateOfStages(const Choice &choice, const Body &body,
                        const StepTable &table, const Layers &layers) const;
  using UseOfTensors = std::function<void(double bytes, double many)>;
  double visitAlone(const Choice &choice, double layers, double bytesOfElement,
                    const UseOfTensors &use) const;
  double partsOfSums(const Choice &choice, double layers,
                     double bytesOfElement) const;
  double gathers(const cost::Times &times, const Choice &choice, double layers,
                 const std::vector<uint32_t> &axes) const;

  const Bound &bound;
  const Facts &facts;
  cost::Machine machine;
  Bound::Given given;
  uint64_t limit;
  double bytesOfGradient, bytesOfSum, bytesOfWeight; // on links, of a parameter
  double bytesOfActivation;
  double bucketBytes; // of gradients that travel together, at most
  Tables tables;
};

} // namespace meshwork::tune
