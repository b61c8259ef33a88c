// Rotary frequencies of the scaling variants, as explicit numbers.
// Internal to lib/Import.
#pragma once

#include <vector>

#include "lib/Import/Config.h"

namespace meshwork::importer {

struct Rope {
  std::vector<float> inverseFrequencies; // half of what turns
  float scale = 1;                       // of cosine and sine
};

struct Source;

/// Reads the base, `thetaKey`, of which `theta` is the default, with
/// rope_scaling or rope_parameters. `rotated` elements of a head turn.
Rope readRope(Config &config, const Source &source, int64_t rotated,
              const std::string &thetaKey, double theta);

/// Of a base alone, without scaling.
Rope plainRope(double theta, int64_t rotated);

} // namespace meshwork::importer
