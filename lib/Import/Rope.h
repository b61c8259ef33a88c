// Rotary frequencies of the scaling variants, as explicit numbers.
// Internal to lib/Import.
#pragma once

#include <vector>

#include "lib/Import/Config.h"

namespace meshwork::importer {

struct Rope {
  std::vector<float> inverseFrequencies; // head_dim / 2
  float scale = 1;                       // of cosine and sine
};

/// Reads rope_theta, of which `theta` is the default, with rope_scaling, or
/// rope_parameters.
Rope readRope(Config &config, const Json &object, const std::string &filename,
              int64_t headDim, double theta, Diagnostics &diagnostics);

} // namespace meshwork::importer
