// What the compiler chose by time, where the spec says "auto".
#pragma once

#include "meshwork/Plan/Plan.h"
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace meshwork::explain {

/// A line for each choice, with why it was made; empty where nothing was
/// chosen.
std::string choicesText(const plan::Plan &plan);

/// README.md has the keys.
nlohmann::ordered_json choicesJson(const plan::Plan &plan);

} // namespace meshwork::explain
