// What a search found, for people and for programs.
#pragma once

#include "tools/meshwork/tune/Search.h"

#include <string>

namespace meshwork::tune {

struct Asked {
  uint32_t ranks = 1;
  double within = 0;
};

/// Tables of the best, of what is usual, and of what was left out.
std::string textOf(const Found &found, const Asked &asked);
/// How the best of each number of ranks compares with the first one.
std::string scalingText(const std::vector<std::pair<uint32_t, Found>> &all);
/// One object for each number of ranks; README.md has the keys.
std::string jsonOf(const std::vector<std::pair<uint32_t, Found>> &all);

/// Why there is no plan: what comes nearest, and what it lacks.
std::string whyNone(const Found &found);

} // namespace meshwork::tune
