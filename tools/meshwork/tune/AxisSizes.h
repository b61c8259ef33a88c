// Sizes that axes of a mesh may have.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace meshwork::tune {

/// Those that --axis gives, by name.
using AxisSizes = std::map<std::string, uint32_t>;

/// Reads "dp=8"; messages go to stderr, an exit code.
int readAxes(const std::vector<std::string> &texts, AxisSizes &sizes);

/// The smallest first.
std::vector<uint32_t> divisorsOf(uint32_t number);

} // namespace meshwork::tune
