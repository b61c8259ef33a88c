// What one microbatch takes on a rank, whatever ranks beside it have the same
// weights or other layers: compiled without a pipeline and without copies, at
// two depths. Choices that differ in other things share it.
#pragma once

#include "lib/Spec/Spec.h"
#include "tools/meshwork/tune/Choice.h"
#include "tools/meshwork/tune/Costed.h"
#include "tools/meshwork/tune/Facts.h"

namespace meshwork::tune {

struct Body {
  Costed::Status status = Costed::broken;
  std::string why;
  double seconds = 0; // of all layers, forward and backward
  /// Bytes of a layer, without what it stores of parameters: what forward keeps
  /// for backward. 0 where nobody knows.
  double keptOfLayer = 0;
};

/// JSON, both ways; reading gives a broken one for what is none.
std::string toJson(const Body &body);
Body bodyFromJson(const std::string &json);

/// The choice whose body it is: one stage, one copy of the weights, ZeRO-0.
Choice bodyOf(const Choice &choice);
/// Sequences of a step of it: one microbatch where one of `choice` has one,
/// else two, which stand for many.
uint32_t globalOfBody(const Choice &choice, uint32_t global);

/// Compiles it; `spec` is that of the body.
Body measureBody(const Facts &facts, const spec::Spec &spec);

} // namespace meshwork::tune
