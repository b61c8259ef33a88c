// What was measured of GPUs, as a machine file.
#pragma once

#include "lib/Cost/Machine.h"
#include "runtime/run/MeasureGpus.h"

namespace meshwork {

/// Of an all_reduce, which has a latency and moves what a ring moves.
cost::Link linkOf(const runtime::MeasuredLink &found, bool takesCores);
/// Measurements have no more digits than these: three.
double rounded(double value);

/// What was not measured is as in `before`. Without `before` it is as in the
/// shipped machine that is named after the device.
cost::Machine machineOfGpus(const runtime::MeasuredGpus &found,
                            const std::optional<cost::Machine> &before);

/// For people: what was measured.
std::vector<std::string> linesOf(const runtime::MeasuredGpus &found,
                                 const cost::Machine &machine);
/// What was not, with the figure that stands there and where it is from.
std::vector<std::string> notMeasured(const runtime::MeasuredGpus &found,
                                     const cost::Machine &machine);

} // namespace meshwork
