// Best first: the choice with the least bound is compiled next, until no bound
// is below the best that was found. So that is the best of all.
#pragma once

#include "tools/meshwork/tune/Cache.h"
#include "tools/meshwork/tune/Found.h"
#include "tools/meshwork/tune/Models.h"
#include "tools/meshwork/tune/Space.h"

namespace meshwork::tune {

struct SearchOptions {
  uint32_t ranks = 1, global = 1;
  double within = 0;
  size_t processes = 1;
  bool hasHost = false; // whether the host's memory is part of the space
};

/// Says how far it is on stderr, if that is a terminal. Ctrl-C ends it with
/// what was found.
///   models  those of the facts
Found search(Specs &specs, const Facts &facts, const Models &models,
             const AxisSizes &axes, const SearchOptions &options, Cache &cache);

} // namespace meshwork::tune
