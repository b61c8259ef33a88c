// What moves between ranks, measured and planned. Internal to Measured.
#pragma once

#include "lib/Cost/Machine.h"
#include "lib/Explain/Measured.h"
#include "lib/Explain/RankStep.h"

namespace meshwork::explain {

/// Of no values 0.
double meanOf(const std::vector<double> &values);
double medianOf(std::vector<double> values);

std::vector<Measured::OfMoves>
measuredMoves(const plan::Plan &plan, const cost::Machine &machine,
              const std::vector<RankStep> &steps);

} // namespace meshwork::explain
