// What the page holds beside the keys of `explain --json`. Internal to
// lib/Report; README.md has the keys.
#pragma once

#include "lib/Report/Report.h"
#include <nlohmann/json.hpp>

namespace meshwork::report {
using Json = nlohmann::ordered_json;

/// Pictures of more programs (stages of a pipeline) would be looked at by
/// nobody: of these the first.
inline constexpr uint32_t mostPrograms = 256;

/// What the model and the step are: text and numbers of the plan's root.
Json factsJson(const plan::Plan &plan);
/// The bytes that live over a step, by kind, of each program.
Json memoryJson(const plan::Plan &plan);
/// How parameters are split, those of repeated layers as one.
Json parametersJson(const plan::Plan &plan);
/// When the actions of a step run: planned, and as a run's trace has them.
Json scheduleJson(const plan::Plan &plan, const explain::Measured *measured);
/// Curves of a run, with fewer points where there are many steps.
Json metricsJson(const Metrics &metrics);

} // namespace meshwork::report
