// A run's times in the machine's form.
#pragma once

#include "lib/Explain/Measured.h"
#include <nlohmann/json.hpp>

namespace meshwork::explain {

/// With the keys of README.md.
nlohmann::ordered_json measuredJson(const Measured &measured);

} // namespace meshwork::explain
