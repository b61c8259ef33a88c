// What one microbatch takes on a rank, whatever ranks beside it have the same
// weights or other layers: compiled without a pipeline and without copies, with
// few layers and with more of each kind. Choices that differ in other things
// share it.
#pragma once

#include "lib/Spec/Spec.h"
#include "tools/meshwork/tune/Choice.h"
#include "tools/meshwork/tune/Costed.h"
#include "tools/meshwork/tune/Facts.h"
#include "tools/meshwork/tune/HostTraffic.h"
#include "tools/meshwork/tune/Models.h"
#include "tools/meshwork/tune/Waits.h"

#include <vector>

namespace meshwork::tune {

/// What one layer of a kind takes.
struct OfLayer {
  double forward = 0, backward = 0; // seconds of a microbatch
  double update = 0;                // seconds of a step
  double kept = 0;                  // bytes that forward keeps for backward
};

struct Body {
  Costed::Status status = Costed::broken;
  std::string why;
  double forward = 0, backward = 0; // seconds of a microbatch, all layers
  /// Of these, what the rank waits for: it may be less where weights are
  /// gathered, too, since other things run beside it then.
  Waits waits = {};
  bool gathersWeights = false; // of two copies of the weights, for each use

  double update = 0; // seconds of a step, nothing being split
  /// Of Facts::kinds; 0 of a kind with few layers. None where the model has few
  /// layers or more kinds than can be told apart.
  std::vector<OfLayer> ofKinds = {};
  double kept = 0;      // bytes, of all layers
  double leastKept = 0; // of the layer that keeps least
  /// The same in a schedule that computes gradients of weights by themselves,
  /// as sketches of this body and of others tell; 0: none did.
  double splitKept = 0;
  double otherBytes = 0; // beside these and what is stored, at the peak
  ToHost toHost = {};    // of all layers

  double seconds() const { return forward + backward; }
  /// What a choice takes at least of them.
  double seconds(const Choice &choice) const {
    if (choice.zeroStage != 3)
      return seconds();
    return seconds() - waits.all() / 2 - (gathersWeights ? waits.other / 2 : 0);
  }
};

/// JSON, both ways; reading gives a broken one for what is none.
std::string toJson(const Body &body);
Body bodyFromJson(const std::string &json);

/// The choice whose body it is: one stage, one copy of the weights, ZeRO-0.
///   gathersApart  with two copies where weights are gathered for each use:
///                 such plans compute more of experts again, and keep less
Choice bodyOf(const Choice &choice, bool gathersApart);
/// Of a step of it: one where one of `choice` has one, else two, which stand
/// for many.
uint32_t microbatchesOfBody(const Choice &choice, uint32_t global);

/// Compiles it; `spec` is that of the body. It computes as slowly as the
/// slowest of `ranks`, which share their nodes.
Body measureBody(const Facts &facts, const Models &models,
                 const spec::Spec &spec, uint32_t ranks);

} // namespace meshwork::tune
