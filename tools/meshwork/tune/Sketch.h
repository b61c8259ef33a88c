// A choice with few layers: its own spec, with its pipeline, its copies of the
// weights and all, compiled at two depths. What a plan takes and needs are sums
// and maxima of what lies on straight lines over the depth. So the line through
// two depths, continued, is never above it.
#pragma once

#include "lib/Spec/Spec.h"
#include "tools/meshwork/tune/Choice.h"
#include "tools/meshwork/tune/Costed.h"
#include "tools/meshwork/tune/Facts.h"
#include "tools/meshwork/tune/InnerStage.h"
#include "tools/meshwork/tune/Models.h"

#include <vector>

namespace meshwork::tune {

struct Sketch {
  Costed::Status status = Costed::broken;
  std::string why;
  /// Without a pipeline: of a step with all layers. Else of one where each
  /// stage has one layer, and for one more in each.
  double seconds = 0, secondsOfLayer = 0;
  /// Of each rank along the pipeline, where each stage has one layer, and for
  /// one more in each; 0 where that was not compiled. Without a pipeline: of
  /// all layers.
  std::vector<double> bytes = {}, ofLayer = {};
  InnerStage inner = {};
};

/// JSON, both ways; reading gives a broken one for what is none.
std::string toJson(const Sketch &sketch);
Sketch sketchFromJson(const std::string &json);

/// Whether it tells anything of a choice, for less than the choice takes.
bool isSketched(const Choice &choice, const Facts &facts);

/// Compiles it.
///   spec  of the choice
Sketch sketchOf(const Facts &facts, const Models &models, const Choice &choice,
                const spec::Spec &spec);

} // namespace meshwork::tune
