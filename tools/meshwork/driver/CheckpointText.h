// What `meshwork checkpoint inspect` and `verify` say of a manifest.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/checkpoint/Checkpoint.h"

namespace meshwork::driver {

using Json = nlohmann::ordered_json;

Json manifestJson(const runtime::Manifest &manifest);

/// One line, without its end: "step 20, 20 updates, ...".
std::string manifestSummary(const runtime::Manifest &manifest);

/// Lines of options, states and tensors.
std::string manifestDetails(const runtime::Manifest &manifest);

} // namespace meshwork::driver
