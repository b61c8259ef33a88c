// The machine's form without what is long: for other reports to hold.
#pragma once

#include "lib/Explain/Measured.h"
#include <nlohmann/json.hpp>

namespace meshwork::explain {

/// The keys of `json` (Explain.h) but `schedule` and `rank_classes`, which grow
/// with a step's microbatches and instructions.
nlohmann::ordered_json summaryJson(const plan::Plan &plan,
                                   const Measured *measured = nullptr);

} // namespace meshwork::explain
