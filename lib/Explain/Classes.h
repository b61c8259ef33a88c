// One class of ranks in the machine's form: its parameters, buffers and
// instructions, and which of them meet.
#pragma once

#include "absl/status/statusor.h"
#include "meshwork/Plan/Plan.h"
#include <nlohmann/json.hpp>

namespace meshwork::explain {

/// A list with an object for each program, with the keys of README.md.
/// resourceExhausted when instructions have more than 2^20 operands in all,
/// which no step needs: lists in a plan may share their bytes.
absl::StatusOr<nlohmann::ordered_json> rankClasses(const plan::Plan &plan);

} // namespace meshwork::explain
